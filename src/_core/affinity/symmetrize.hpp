// S = A + Aᵀ for a CSR matrix A without duplicates, with sorted columns; docs/math.md section 3.
// S has at most twice the entries of A. It is written into its final arrays with gaps, which are closed at the end, so
// no copy of A is needed. Each thread fills a range of rows in a fixed order, so results do not depend on their number.
#pragma once
#include <algorithm>
#include <vector>

#include "affinity/permute.hpp"
#include "threads/parallel.hpp"
#include "types.hpp"

namespace eq {

template <class R> struct Entry {
    std::int32_t column;
    R value;
};

// Where each row of S begins before duplicates are merged: its own entries come first, then those of Aᵀ.
inline std::vector<std::int64_t> row_starts(const Csr &A) {
    std::vector<std::int64_t> begin(std::size_t(A.rows) + 1, 0);
    for (std::int64_t t = 0; t < A.entries(); ++t) ++begin[std::size_t(A.indices[t]) + 1];
    for (std::int64_t i = 0; i < A.rows; ++i) begin[std::size_t(i) + 1] += begin[std::size_t(i)] + A.length(i);
    return begin;
}

// Merges a row's `own` entries, in any order, with the `size` - `own` entries of Aᵀ after them, whose columns ascend.
// Returns the number of entries after the merge.
template <class R>
std::int64_t merge(Entry<R> *row, std::int64_t own, std::int64_t size, std::int32_t *columns, R *values) {
    std::sort(row, row + own, [](const Entry<R> &a, const Entry<R> &b) { return a.column < b.column; });
    const Entry<R> *a = row, *const a_end = row + own, *b = a_end, *const b_end = row + size;
    std::int64_t merged = 0;
    for (; a != a_end || b != b_end; ++merged) {
        const bool take_a = b == b_end || (a != a_end && a->column <= b->column);
        const bool take_b = a == a_end || (b != b_end && b->column <= a->column);
        columns[merged] = take_a ? a->column : b->column;
        values[merged] = (take_a ? a->value : R(0)) + (take_b ? b->value : R(0));
        a += take_a;
        b += take_b;
    }
    return merged;
}

// A is (n, n). S.indptr has n + 1 entries, S.indices and S.values twice those of A. Returns the number of entries of S.
template <class R> std::int64_t symmetrize(const Csr &A, const R *values, CsrOut<R> S, int threads) {
    const std::int64_t n = A.rows, *const indptr = A.indptr;
    const std::int32_t *const indices = A.indices;
    const std::vector<std::int64_t> begin = row_starts(A);
    std::vector<std::int64_t> size(begin.begin(), begin.end());
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < n; ++i) longest = std::max(longest, begin[std::size_t(i) + 1] - begin[std::size_t(i)]);
    const std::int64_t parts = slots(threads);
    std::vector<Entry<R>> rows(static_cast<std::size_t>(parts * longest));  // a row for every part
    const auto fill = [&](std::int64_t part) {
        const std::int64_t low = n * part / parts, high = n * (part + 1) / parts;
        for (std::int64_t i = low; i < high; ++i)  // leave space for the row's own entries
            size[std::size_t(i)] = begin[std::size_t(i)] + indptr[i + 1] - indptr[i];
        for (std::int64_t i = 0; i < n; ++i)  // in ascending order, so the entries of Aᵀ are sorted
            for (std::int64_t t = indptr[i]; t < indptr[i + 1]; ++t)
                if (indices[t] >= low && indices[t] < high) {
                    const std::int64_t at = size[std::size_t(indices[t])]++;
                    S.indices[at] = std::int32_t(i);
                    S.values[at] = values[t];
                }
        Entry<R> *const row = rows.data() + part * longest;
        for (std::int64_t i = low; i < high; ++i) {
            const std::int64_t own = indptr[i + 1] - indptr[i], first = begin[std::size_t(i)];
            const std::int64_t length = begin[std::size_t(i) + 1] - first;
            for (std::int64_t t = 0; t < own; ++t) row[t] = {indices[indptr[i] + t], values[indptr[i] + t]};
            for (std::int64_t t = own; t < length; ++t) row[t] = {S.indices[first + t], S.values[first + t]};
            size[std::size_t(i)] = merge(row, own, length, S.indices + first, S.values + first);
        }
    };
    parallel_for(parts, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t part = first; part < last; ++part) fill(part);
    });
    S.indptr[0] = 0;
    for (std::int64_t i = 0; i < n; ++i) {  // close the gaps; rows only move to the left
        const std::int64_t first = begin[std::size_t(i)], next = S.indptr[i], length = size[std::size_t(i)];
        std::copy(S.indices + first, S.indices + first + length, S.indices + next);
        std::copy(S.values + first, S.values + first + length, S.values + next);
        S.indptr[i + 1] = next + length;
    }
    return S.indptr[n];
}

}  // namespace eq
