// Table lookup for one squared distance and for eight. types.hpp describes the layout of a table.
#pragma once
#include "simd/vector8.hpp"
#include "types.hpp"

namespace eq {
namespace EQ_ISA {

// The position of d2: its segment, and the offset inside it as a fraction f in [0, 1) and as a step in d2. Both offsets
// are exact. V is float or Vector, and I the integers of the same size.
template <class V, class I> struct Place {
    static constexpr std::int32_t INSIDE = (1 << TABLE_BITS) - 1;
    I segment;
    V f, step;
    Place() = default;
    EQ_INLINE Place(const Table &table, V d2) {
        const V low = V{} + bits<float>(table.first << TABLE_BITS),
                high = V{} + bits<float>((table.first + table.size - 1) << TABLE_BITS);
        V x = d2 * table.scale;
        x = x > low ? x : low;
        x = x < high ? x : high;
        const I b = bits<I>(x);
        segment = (b >> TABLE_BITS) - table.first;
        f = bits<V>(((b & INSIDE) << (23 - TABLE_BITS)) | 0x3F800000) -
            1.0f;  // moved to the top of the mantissa of 1 + f
        step = (x - bits<V>(b & ~INSIDE)) * (1.0f / table.scale);
    }
};

// The slope is the parabola s0 + s1 f + s2 f²; the value is v0 plus its integral.
template <class V> EQ_INLINE V slope_in(const V *segment, V f) {
    return segment[1] + f * (segment[2] + f * segment[3]);
}
template <class V> EQ_INLINE V value_in(const V *segment, V f, V step) {
    return segment[0] + step * (segment[1] + f * (segment[2] * 0.5f + f * (segment[3] * (1.0f / 3))));
}

template <class R> EQ_INLINE void look_up(const Table &table, R d2, R *value, R *slope) {
    const Place<float, std::int32_t> at(table, float(d2));
    R segment[4];
    for (int s = 0; s < 4; ++s) segment[s] = R(table.segments[4 * std::int64_t(at.segment) + s]);
    *value = value_in(segment, R(at.f), R(at.step));
    *slope = slope_in(segment, R(at.f));
}

// Eight at a time; the value only if VALUE.
template <bool VALUE>
EQ_INLINE void look_up_eight(const Table &table, const Place<Vector, Integers> &at, Vector *value, Vector *slope) {
    std::int32_t index[8];
    std::memcpy(index, &at.segment, sizeof index);
    Vector segment[4];
    columns<4>(table.segments, index, segment);
    if constexpr (VALUE) *value = value_in(segment, at.f, at.step);
    *slope = slope_in(segment, at.f);
}

}  // namespace EQ_ISA
}  // namespace eq
