// S = A + Aᵀ for a CSR matrix A without duplicates, with sorted columns; docs/math.md section 3.
// S has at most twice the entries of A. It is written into its final arrays with gaps, which are closed at the end, so
// no copy of A is needed. Entries of a row are merged in a fixed order, so results do not depend on the number of threads.
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
    const std::int64_t n = A.rows;
    const std::int64_t blocks = std::min<std::int64_t>(slots(threads), n / 1024 + 1), parts = 4 * blocks;
    const auto for_blocks = [&](const auto &use) {
        parallel_for(blocks, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t b = first; b < last; ++b)
                for (std::int64_t i = n * b / blocks; i < n * (b + 1) / blocks; ++i) use(b, i);
        });
    };
    // The entries of each column in each block of rows; later, where the next of them goes in its row of S.
    std::vector<std::int32_t> place(std::size_t(blocks * n), 0);
    for_blocks([&](std::int64_t b, std::int64_t i) {
        std::int32_t *const count = place.data() + b * n;
        for (std::int64_t t = A.indptr[i]; t < A.indptr[i + 1]; ++t) ++count[A.indices[t]];
    });
    // Where each row of S begins before duplicates are merged: its own entries come first, then those of Aᵀ.
    std::vector<std::int64_t> begin(std::size_t(n) + 1, 0);
    parallel_for(n, 4096, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t j = first; j < last; ++j) {
            std::int64_t total = A.length(j);
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int32_t count = place[std::size_t(b * n + j)];
                place[std::size_t(b * n + j)] = std::int32_t(total);
                total += count;
            }
            begin[std::size_t(j) + 1] = total;
        }
    });
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        longest = std::max(longest, begin[std::size_t(i) + 1]);
        begin[std::size_t(i) + 1] += begin[std::size_t(i)];
    }
    for_blocks([&](std::int64_t b, std::int64_t i) {  // in ascending order, so the entries of Aᵀ are sorted
        std::int32_t *const next = place.data() + b * n;
        for (std::int64_t t = A.indptr[i]; t < A.indptr[i + 1]; ++t) {
            const std::int64_t j = A.indices[t], at = begin[std::size_t(j)] + next[j]++;
            S.indices[at] = std::int32_t(i);
            S.values[at] = values[t];
        }
    });
    // Merge the rows; those of a part follow each other without gaps. Then the parts are moved to the left.
    std::vector<Entry<R>> rows(static_cast<std::size_t>(slots(threads) * longest));  // a row for each thread
    parallel_for(parts, 1, threads, [&](std::int64_t first, std::int64_t last, int slot) {
        Entry<R> *const row = rows.data() + slot * longest;
        for (std::int64_t part = first; part < last; ++part) {
            std::int64_t to = begin[std::size_t(n * part / parts)];
            for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
                const std::int64_t own = A.length(i), from = begin[std::size_t(i)];
                const std::int64_t length = begin[std::size_t(i) + 1] - from;
                for (std::int64_t t = 0; t < own; ++t) row[t] = {A.indices[A.indptr[i] + t], values[A.indptr[i] + t]};
                for (std::int64_t t = own; t < length; ++t) row[t] = {S.indices[from + t], S.values[from + t]};
                S.indptr[i + 1] = merge(row, own, length, S.indices + to, S.values + to);
                to += S.indptr[i + 1];
            }
        }
    });
    S.indptr[0] = 0;
    for (std::int64_t i = 0; i < n; ++i) S.indptr[i + 1] += S.indptr[i];
    for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t low = n * part / parts, from = begin[std::size_t(low)];
        const std::int64_t length = S.indptr[n * (part + 1) / parts] - S.indptr[low];
        std::copy(S.indices + from, S.indices + from + length, S.indices + S.indptr[low]);
        std::copy(S.values + from, S.values + from + length, S.values + S.indptr[low]);
    }
    return S.indptr[n];
}

}  // namespace eq
