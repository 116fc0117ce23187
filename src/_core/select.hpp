// The nearest of many candidates: the k smallest numbers of each row, without sorting the row.
#pragma once
#include "eight.hpp"
#include <algorithm>
#include <limits>
#include <vector>

namespace eq {
namespace EQ_ISA {

// A number and its column as one integer: in the order of the numbers, of equal ones in that of the columns.
EQ_INLINE std::uint64_t key(float value, std::int64_t column) {
    const std::uint32_t x = bits<std::uint32_t>(value), negative = 0u - (x >> 31);
    return std::uint64_t(x ^ (negative | 0x80000000u)) << 32 | std::uint32_t(column);
}

// Whether any of 8 comparisons holds.
EQ_INLINE bool any(Integers holds) {
    typedef std::int64_t Longs __attribute__((vector_size(32)));
    const Longs pairs = bits<Longs>(holds);
    return (pairs[0] | pairs[1] | pairs[2] | pairs[3]) != 0;
}

// For each row of dots (rows, columns): the columns of the k smallest norm - 2 dot, from the smallest on; of equal ones the
// first. All must be finite. What lies above the k-th smallest of the numbers seen so far is passed over 32 at a time.
inline void nearest(const float *dots, const float *norms, std::int64_t rows, std::int64_t columns, std::int64_t k,
                    std::int32_t *out) {
    std::vector<std::uint64_t> found(std::size_t(3 * k + 8));
    const auto first = found.begin();
    for (std::int64_t i = 0; i < rows; ++i) {
        const float *dot = dots + i * columns;
        std::int64_t size = 0;
        float limit = std::numeric_limits<float>::infinity();
        auto add = [&](std::int64_t from, std::int64_t to) {
            for (std::int64_t t = from; t < to; ++t) {
                const float value = norms[t] - 2 * dot[t];
                found[std::size_t(size)] = key(value, t);
                size += value < limit;
            }
            if (size > 3 * k) {
                std::nth_element(first, first + k - 1, first + size);
                size = k;
                const std::uint32_t x = std::uint32_t(found[std::size_t(k - 1)] >> 32);
                limit = bits<float>(x & 0x80000000u ? x ^ 0x80000000u : ~x);
            }
        };
        std::int64_t t = 0;
        for (; t + 32 <= columns; t += 32) {
            Integers below[4];
            for (int v = 0; v < 4; ++v) below[v] = load(norms + t + 8 * v) - 2 * load(dot + t + 8 * v) < limit;
            if (!any((below[0] | below[1]) | (below[2] | below[3]))) continue;
            for (int v = 0; v < 4; ++v)
                if (any(below[v])) add(t + 8 * v, t + 8 * v + 8);
        }
        for (; t < columns; t += 8) add(t, std::min(t + 8, columns));
        std::nth_element(first, first + k - 1, first + size);
        std::sort(first, first + k);
        for (std::int64_t s = 0; s < k; ++s) out[i * k + s] = std::int32_t(std::uint32_t(found[std::size_t(s)]));
    }
}

}  // namespace EQ_ISA
}  // namespace eq
