// Points stored by columns, and the sums over tiles in a fixed order that both primitives use.
#pragma once
#include <cstdint>

#include "simd/scratch.hpp"
#include "simd/vecmath.hpp"
#include "types.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int TILE = 256;  // pairs per tile of a dense row: a dozen arrays of this length fit in the L1 cache
constexpr int SHORT = 32;  // pairs per tile of a sparse row: short, so that the last tile has little padding
constexpr int LANES = 16;  // partial sums per tile, the same in every instruction set

// The number of threads worth starting for this many pairs: below 2^18 pairs each, about 0.3 ms, synchronisation costs
// more than it gains. Each row is summed by one thread, so results do not depend on it.
inline int useful_threads(int threads, double pairs) {
    const double useful = pairs / (1 << 18) + 1;
    return useful < threads ? int(useful) : threads;
}

// Points as d columns, each padded with zeros to a multiple of TILE.
template <class R> struct Columns {
    std::int64_t n, stride;
    int d;
    Buffer<R> data;
    explicit Columns(Points<R> Y) : n(Y.n), stride((Y.n + TILE - 1) / TILE * TILE), d(Y.d), data(stride * Y.d) {
        for (std::int64_t i = 0; i < n; ++i)
            for (int c = 0; c < d; ++c) data[c * stride + i] = Y.data[i * d + c];
    }
    const R *column(int c) const { return data.data + c * stride; }
};

// Σ_t w_t x_t over one tile, as LANES partial sums.
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
