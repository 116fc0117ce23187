// S = A + Aᵀ for a CSR matrix A without duplicates, with sorted columns; docs/math.md section 3.
// Twice the entries of A bound those of S, so S is written where it will stay and closed up: nothing of the size of A
// is made on the way. Every thread owns a range of rows and fills them in one fixed order, so the number of threads
// never changes a byte.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace eq {

template <class R> struct Entry {
    std::int32_t column;
    R value;
};

// Where each row of S begins before pairs are merged: its own entries, then one for each time A lists it.
inline std::vector<std::int64_t> room(const std::int64_t *indptr, const std::int32_t *indices, std::int64_t n) {
    std::vector<std::int64_t> begin(std::size_t(n) + 1, 0);
    for (std::int64_t t = 0; t < indptr[n]; ++t) ++begin[std::size_t(indices[t]) + 1];
    for (std::int64_t i = 0; i < n; ++i) begin[std::size_t(i) + 1] += begin[std::size_t(i)] + indptr[i + 1] - indptr[i];
    return begin;
}

// Merges the row's `own` entries, in any order, with those of Aᵀ behind them, whose columns rise; returns the length.
template <class R>
std::int64_t merge(std::vector<Entry<R>> &row, std::int64_t own, std::int32_t *columns, R *values) {
    const auto before = [](const Entry<R> &a, const Entry<R> &b) { return a.column < b.column; };
    std::sort(row.begin(), row.begin() + own, before);
    auto a = row.begin(), b = row.begin() + own, a_end = b, b_end = row.end();
    std::int64_t size = 0;
    for (; a != a_end || b != b_end; ++size) {
        const bool take_a = b == b_end || (a != a_end && a->column <= b->column);
        const bool take_b = a == a_end || (b != b_end && b->column <= a->column);
        columns[size] = take_a ? a->column : b->column;
        values[size] = (take_a ? a->value : R(0)) + (take_b ? b->value : R(0));
        a += take_a;
        b += take_b;
    }
    return size;
}

// A (n, n) as indptr, indices, values; S as out_indptr (n + 1) and, of twice the length of A's, out_indices,
// out_values. Returns the number of entries of S.
template <class R>
std::int64_t symmetrize(const std::int64_t *indptr, const std::int32_t *indices, const R *values, std::int64_t n,
                        std::int64_t *out_indptr, std::int32_t *out_indices, R *out_values, int threads) {
    const std::vector<std::int64_t> begin = room(indptr, indices, n);
    std::vector<std::int64_t> size(begin.begin(), begin.end());
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int part = 0; part < threads; ++part) {
        const std::int64_t low = n * part / threads, high = n * (part + 1) / threads;
        for (std::int64_t i = low; i < high; ++i)  // leave room for the row's own entries
            size[std::size_t(i)] = begin[std::size_t(i)] + indptr[i + 1] - indptr[i];
        for (std::int64_t i = 0; i < n; ++i)  // rising i, so the entries of Aᵀ come sorted
            for (std::int64_t t = indptr[i]; t < indptr[i + 1]; ++t)
                if (indices[t] >= low && indices[t] < high) {
                    const std::int64_t at = size[std::size_t(indices[t])]++;
                    out_indices[at] = std::int32_t(i);
                    out_values[at] = values[t];
                }
        std::vector<Entry<R>> row;
        for (std::int64_t i = low; i < high; ++i) {
            const std::int64_t own = indptr[i + 1] - indptr[i], first = begin[std::size_t(i)];
            row.clear();
            for (std::int64_t t = indptr[i]; t < indptr[i + 1]; ++t) row.push_back({indices[t], values[t]});
            for (std::int64_t t = first + own; t < begin[std::size_t(i) + 1]; ++t)
                row.push_back({out_indices[t], out_values[t]});
            size[std::size_t(i)] = merge(row, own, out_indices + first, out_values + first);
        }
    }
    out_indptr[0] = 0;
    for (std::int64_t i = 0; i < n; ++i) {  // close the gaps; a row never moves to the right
        const std::int64_t first = begin[std::size_t(i)], next = out_indptr[i], length = size[std::size_t(i)];
        std::copy(out_indices + first, out_indices + first + length, out_indices + next);
        std::copy(out_values + first, out_values + first + length, out_values + next);
        out_indptr[i + 1] = next + length;
    }
    return out_indptr[n];
}

}  // namespace eq
