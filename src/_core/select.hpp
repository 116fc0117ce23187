// The nearest of many candidates: the k smallest numbers of each row, without sorting the row; and how many lie below a limit.
#pragma once
#include <algorithm>
#include <limits>

#include "eight.hpp"
#include "tiles.hpp"

namespace eq {
namespace EQ_ISA {

// A number and its column as one integer: in the order of the numbers, of equal ones in that of the columns. A type of its
// own, as what the standard library makes of it must not be shared between instruction sets.
struct Ranked {
    std::uint64_t key;
    Ranked() = default;
    EQ_INLINE Ranked(float value, std::int64_t column) {
        const std::uint32_t x = bits<std::uint32_t>(value);
        key = std::uint64_t(x >> 31 ? ~x : x ^ SIGN) << 32 | std::uint32_t(column);
    }
    float value() const {
        const std::uint32_t x = std::uint32_t(key >> 32);
        return bits<float>(x & SIGN ? x ^ SIGN : ~x);
    }
    std::int32_t column() const { return std::int32_t(std::uint32_t(key)); }
    bool operator<(const Ranked &other) const { return key < other.key; }
    static constexpr std::uint32_t SIGN = 0x80000000u;
};

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
    Buffer<Ranked> found(3 * k + 8);
    Ranked *const first = found.data;
    for (std::int64_t i = 0; i < rows; ++i) {
        const float *dot = dots + i * columns;
        std::int64_t size = 0;
        float limit = std::numeric_limits<float>::infinity();
        auto add = [&](std::int64_t from, std::int64_t to) {
            for (std::int64_t t = from; t < to; ++t) {
                const float value = norms[t] - 2 * dot[t];
                first[size] = Ranked(value, t);
                size += value < limit;
            }
            if (size > 3 * k) {
                std::nth_element(first, first + k - 1, first + size);
                size = k;
                limit = first[k - 1].value();
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
        for (; t < columns; t += 8) add(t, t + 8 < columns ? t + 8 : columns);
        std::nth_element(first, first + k - 1, first + size);
        std::sort(first, first + k);
        for (std::int64_t s = 0; s < k; ++s) out[i * k + s] = first[s].column();
    }
}

// The numbers of n values, n a multiple of 8, that lie below each of m limits: eight limits at a time.
inline void count_below(const float *values, std::int64_t n, const float *limits, std::int64_t m, std::int32_t *counts) {
    constexpr int W = 8;
    for (std::int64_t first = 0; first < m; first += W) {
        const int width = int(m - first < W ? m - first : W);
        Vector limit[W];
        Integers count[W];
        for (int b = 0; b < W; ++b) {
            limit[b] = Vector{} + limits[first + (b < width ? b : 0)];
            count[b] = Integers{};
        }
        for (std::int64_t t = 0; t < n; t += 8) {
            const Vector value = load(values + t);
            for (int b = 0; b < W; ++b) count[b] -= value < limit[b];
        }
        for (int b = 0; b < width; ++b) {
            counts[first + b] = 0;
            for (int t = 0; t < 8; ++t) counts[first + b] += count[b][t];
        }
    }
}

// The places of those of n values, n a multiple of 8, from `low` on and below `high`, in order, in `out`; returns how many.
inline std::int64_t between(const float *values, std::int64_t n, float low, float high, std::int32_t *out) {
    std::int64_t size = 0;
    for (std::int64_t t = 0; t < n; t += 8) {
        const Vector value = load(values + t);
        if (!any((value >= low) & (value < high))) continue;
        for (int l = 0; l < 8; ++l) {
            out[size] = std::int32_t(t + l);
            size += values[t + l] >= low && values[t + l] < high;
        }
    }
    return size;
}

}  // namespace EQ_ISA
}  // namespace eq
