// The k smallest of a list of values, by bisection: a count of the values up to a limit has no branches.
#pragma once
#include <algorithm>
#include <limits>

#include "neighbors/limits.hpp"
#include "neighbors/panels.hpp"

namespace eq {
namespace EQ_ISA {

// How many of n values, n a multiple of 8, are at most `limit`.
EQ_INLINE std::int64_t count_up_to(const float *values, std::int64_t n, float limit) {
    const Vector most = broadcast(limit);
    Integers even{}, odd{};
    std::int64_t t = 0;
    for (; t + 16 <= n; t += 16) {
        even -= load(values + t) <= most;
        odd -= load(values + t + 8) <= most;
    }
    if (t < n) even -= load(values + t) <= most;
    even += odd;
    std::int64_t count = 0;
    for (int l = 0; l < 8; ++l) count += even[l];
    return count;
}

// The smallest and the largest finite value of n > 0, n a multiple of 8.
struct Range {
    float low, high;
};

EQ_INLINE Range range(const float *values, std::int64_t n) {
    const Vector inf = broadcast(INF), lowest = broadcast(-INF);
    Vector low = inf, high = lowest;
    for (std::int64_t t = 0; t < n; t += 8) {
        const Vector value = load(values + t), finite = value < inf ? value : lowest;
        low = value < low ? value : low;
        high = finite > high ? finite : high;
    }
    Range result{low[0], high[0]};
    for (int l = 1; l < 8; ++l) {
        result.low = low[l] < result.low ? low[l] : result.low;
        result.high = high[l] > result.high ? high[l] : result.high;
    }
    return result;
}

// Limits around the `least`-th smallest value: fewer than `least` values are up to `low`, and `count` >= least up to
// `high`. Stops when count <= most, or when the limits are neighbouring floats, because of ties.
struct Limits {
    float low, high;
    std::int64_t count;
};

EQ_INLINE Limits bisect(const float *values, std::int64_t n, std::int64_t least, std::int64_t most) {
    const Range all = range(values, n);
    Limits limits{-INF, all.low, count_up_to(values, n, all.low)};
    if (limits.count >= least) return limits;
    limits = {all.low, all.high, count_up_to(values, n, all.high)};
    while (limits.count > most) {
        const float middle = limits.low + (limits.high - limits.low) / 2;
        if (!(limits.low < middle && middle < limits.high)) break;
        const std::int64_t count = count_up_to(values, n, middle);
        if (count < least) limits.low = middle;
        else {
            limits.high = middle;
            limits.count = count;
        }
    }
    return limits;
}

// An upper bound of the `least`-th smallest of n values (a multiple of 8); not many more values are up to it. Values t
// with the same t modulo L form a class. There are L >= 4 least classes, so the bound for their minima is hardly larger.
// `minima` has room for n values.
inline float bound(const float *values, std::int64_t n, std::int64_t least, float *minima) {
    std::int64_t L = 32;
    while (L < 4 * least) L *= 2;
    if (2 * L <= n) {
        for (std::int64_t t = 0; t < L; t += 8) store(minima + t, load(values + t));
        for (std::int64_t t = L; t < n; t += 8) {
            float *const at = minima + (t & (L - 1));
            const Vector low = load(at), value = load(values + t);
            store(at, value < low ? value : low);
        }
        values = minima;
        n = L;
    }
    const Limits limits = bisect(values, n, least, least + least / 4 + 4);
    return limits.count >= least ? limits.high : std::numeric_limits<float>::max();
}

// Writes the positions t of n values, a multiple of 8, for which wanted(t) is true in ascending order, and returns their
// number. wanted(t) compares the 8 values from t on. Of 64 values, 4 or more positions are written whether or not there
// are as many: this avoids branches that cannot be predicted. `positions` has room for 4 more.
template <class Wanted>
EQ_INLINE std::int64_t list_positions(std::int64_t n, std::int32_t *positions, const Wanted &wanted) {
    std::int64_t size = 0;
    for (std::int64_t first = 0; first < n; first += 64) {
        std::uint64_t mask = 0;
        const std::int64_t last = std::min<std::int64_t>(first + 64, n);
        for (std::int64_t t = first; t < last; t += 8) mask |= mask_of(wanted(t)) << (t - first);
        const int count = __builtin_popcountll(mask);
        for (int done = 0; done < count; done += 4)
            for (int t = 0; t < 4; ++t) {
                positions[size + done + t] = std::int32_t(first) + __builtin_ctzll(mask | std::uint64_t(1) << 63);
                mask &= mask - 1;
            }
        size += count;
    }
    return size;
}

// The largest of n values; the array has room for 8 more.
EQ_INLINE float largest(float *values, std::int64_t n) {
    const std::int64_t whole = (n + 7) / 8 * 8;
    std::fill(values + n, values + whole, -INF);
    return range(values, whole).high;
}

// Keeps the k smallest of `size` > k values and their ids, in their order; of ties, those with the lowest ids. The
// arrays have room for 8 more values.
inline void keep_smallest(float *values, std::int32_t *ids, std::int64_t size, std::int64_t k, Ranked *scratch) {
    const std::int64_t whole = (size + 7) / 8 * 8;
    std::fill(values + size, values + whole, INF);
    Limits limits = bisect(values, whole, k, k);
    std::int32_t last = std::numeric_limits<std::int32_t>::max();  // of the values at the limit, the largest id kept
    if (limits.count > k) {
        for (std::int64_t t = 0; t < size; ++t) scratch[t] = Ranked(values[t], ids[t]);
        std::nth_element(scratch, scratch + k - 1, scratch + size);
        limits.high = scratch[k - 1].value();
        last = scratch[k - 1].column();
    }
    std::int64_t kept = 0;
    for (std::int64_t t = 0; t < size; ++t) {
        const float value = values[t];
        const std::int32_t id = ids[t];
        values[kept] = value;
        ids[kept] = id;
        kept += (value < limits.high) | ((value == limits.high) & (id <= last));
    }
}

}  // namespace EQ_ISA
}  // namespace eq
