// Values with their columns in one order, and values below or between limits.
#pragma once
#include <algorithm>
#include <limits>

#include "simd/scratch.hpp"
#include "simd/vector8.hpp"

namespace eq {
namespace EQ_ISA {

// A value and its column as one integer, ordered by value and then by column. A separate type, so that the instances
// of standard algorithms are not shared between instruction sets.
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

// Whether any of 8 comparisons is true.
EQ_INLINE bool any(Integers holds) {
    typedef std::int64_t Longs __attribute__((vector_size(32)));
    const Longs pairs = bits<Longs>(holds);
    return (pairs[0] | pairs[1] | pairs[2] | pairs[3]) != 0;
}

// The results of 8 comparisons as the bits of an integer.
EQ_INLINE std::uint64_t mask_of(Integers holds) {
#if defined(__AVX__)
    return std::uint64_t(__builtin_ia32_movmskps256(bits<Vector>(holds)));
#elif defined(__SSE__)
    typedef float Quad __attribute__((vector_size(16)));
    struct Halves {
        Quad low, high;
    };
    const Halves halves = bits<Halves>(holds);
    return std::uint64_t(__builtin_ia32_movmskps(halves.low) | __builtin_ia32_movmskps(halves.high) << 4);
#else
    const Integers weighted = holds & Integers{1, 2, 4, 8, 16, 32, 64, 128};
    std::uint64_t mask = 0;
    for (int l = 0; l < 8; ++l) mask |= std::uint64_t(weighted[l]);
    return mask;
#endif
}

// How many of n values, n a multiple of 8, are below each of W limits.
template <int W>
EQ_INLINE void count_below(const float *values, std::int64_t n, const float *limits, std::int32_t *counts) {
    Vector limit[W];
    Integers count[W];
    for (int b = 0; b < W; ++b) {
        limit[b] = Vector{} + limits[b];
        count[b] = Integers{};
    }
    for (std::int64_t t = 0; t < n; t += 8) {
        const Vector value = load(values + t);
        for (int b = 0; b < W; ++b) count[b] -= value < limit[b];
    }
    for (int b = 0; b < W; ++b) {
        counts[b] = 0;
        for (int t = 0; t < 8; ++t) counts[b] += count[b][t];
    }
}

// The same for any even number m of limits: six at a time, as many as fit in the registers, then two.
inline void count_below(const float *values, std::int64_t n, const float *limits, std::int64_t m,
                        std::int32_t *counts) {
    std::int64_t b = 0;
    for (; b + 6 <= m; b += 6) count_below<6>(values, n, limits + b, counts + b);
    for (; b < m; b += 2) count_below<2>(values, n, limits + b, counts + b);
}

// Minima of values (tiles, 8, 8) along the second axis: out (tiles, 8).
inline void tile_minima(const float *values, std::int64_t tiles, float *out) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
        Vector low = load(values + 64 * tile);
        for (int e = 1; e < 8; ++e) {
            const Vector value = load(values + 64 * tile + 8 * e);
            low = value < low ? value : low;
        }
        std::memcpy(out + 8 * tile, &low, sizeof low);
    }
}

// Writes the positions of the values in [low, high), in ascending order, to `out`; n is a multiple of 8. Returns their
// number.
inline std::int64_t between(const float *values, std::int64_t n, float low, float high, std::int32_t *out) {
    std::int64_t size = 0;
    auto add = [&](std::int64_t t) {
        for (int l = 0; l < 8; ++l) {
            out[size] = std::int32_t(t + l);
            size += values[t + l] >= low && values[t + l] < high;
        }
    };
    auto inside = [&](std::int64_t t) { return (load(values + t) >= low) & (load(values + t) < high); };
    std::int64_t t = 0;
    for (; t + 32 <= n; t += 32) {
        const Integers in[4] = {inside(t), inside(t + 8), inside(t + 16), inside(t + 24)};
        if (!any((in[0] | in[1]) | (in[2] | in[3]))) continue;
        for (int v = 0; v < 4; ++v)
            if (any(in[v])) add(t + 8 * v);
    }
    for (; t < n; t += 8)
        if (any(inside(t))) add(t);
    return size;
}

}  // namespace EQ_ISA
}  // namespace eq
