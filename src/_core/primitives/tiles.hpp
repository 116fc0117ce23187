// Points in structure-of-arrays layout and the fixed-order sums over tiles that both primitives use.
#pragma once
#include <cstdint>

#include "simd/vecmath.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int TILE = 256;  // pairs per tile of a full row: a dozen arrays of this length stay in the first-level cache
constexpr int SHORT = 32;  // pairs per tile of a sparse row, so that little of the last one is padding
constexpr int LANES = 16;  // partial sums per tile, the same in every instruction set

struct Unset {};
constexpr Unset UNSET;

template <class T> struct Buffer {  // std::vector would emit symbols that the linker shares between instruction sets
    T *data;
    explicit Buffer(std::int64_t size) : data(new T[size]()) {}
    Buffer(std::int64_t size, Unset) : data(new T[size]) {}
    ~Buffer() { delete[] data; }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    T &operator[](std::int64_t i) { return data[i]; }
    const T &operator[](std::int64_t i) const { return data[i]; }
};

// Threads worth waking for this many pairs: below a quarter of a million each, about 0.3 ms, waiting costs more than it
// gains. Rows are summed by one thread each, so the bytes do not depend on it.
inline int worth(int threads, std::int64_t pairs) {
    const std::int64_t useful = pairs / (1 << 18) + 1;
    return useful < threads ? int(useful) : threads;
}

// Y (n, d) row by row -> d columns, each padded to whole tiles.
template <class R> struct Columns {
    std::int64_t n, stride;
    int d;
    Buffer<R> data;
    Columns(const R *Y, std::int64_t n_, int d_)
        : n(n_), stride((n_ + TILE - 1) / TILE * TILE), d(d_), data(stride * d_) {
        for (std::int64_t i = 0; i < n; ++i)
            for (int c = 0; c < d; ++c) data[c * stride + i] = Y[i * d + c];
    }
    const R *column(int c) const { return data.data + c * stride; }
};

// Σ_t w_t x_t over one tile, in LANES partial sums.
template <int TILE, class R> EQ_INLINE R dot(const R *w, const R *x) {
    R lanes[LANES] = {};
    for (int t = 0; t < TILE; t += LANES)
        for (int l = 0; l < LANES; ++l) lanes[l] += w[t + l] * x[t + l];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0];
}

}  // namespace EQ_ISA
}  // namespace eq
