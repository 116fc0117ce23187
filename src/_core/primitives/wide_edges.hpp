// Edges of a sparse graph in float32, for more than four dimensions: a point is a row of vectors of 8 floats. The
// squared distances of 8 edges are collected in one vector, so that the kernel is evaluated for 8 edges at a time.
#pragma once
#include "primitives/tiles.hpp"
#include "simd/vector8.hpp"

namespace eq {
namespace EQ_ISA {

// The sum of the lanes of each of 8 vectors.
EQ_INLINE Vector totals(const Vector *x) {
    Vector pair[4], quad[2];
    for (int t = 0; t < 4; ++t)
        pair[t] = __builtin_shufflevector(x[2 * t], x[2 * t + 1], 0, 8, 2, 10, 4, 12, 6, 14) +
                  __builtin_shufflevector(x[2 * t], x[2 * t + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    for (int t = 0; t < 2; ++t)
        quad[t] = __builtin_shufflevector(pair[2 * t], pair[2 * t + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
                  __builtin_shufflevector(pair[2 * t], pair[2 * t + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(quad[0], quad[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(quad[0], quad[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

// Points are stored as rows of `width` floats, of which the first d are coordinates.
struct RowShape {
    int width, d;
};

// Weights of 8 edges: those stored.
struct Stored {
    EQ_INLINE Vector operator()(std::int64_t, const std::int32_t *, const float *stored) const { return load(stored); }
};

// Rows of W floats, W a multiple of 8; FIXED is W if it is known at compile time, else 0. `weigh` returns the weights
// of 8 edges of point i from their indices and stored weights, which are 1 for a graph without weights.
template <int FIXED, bool POTENTIAL, class K, class Weigh>
void wide_rows(const K &k, const Weigh &weigh, const Weights &A, const float *targets, const float *Y, RowShape shape,
               EdgeSums out, int threads) {
    const int W = FIXED > 0 ? FIXED : shape.width, d = shape.d;
    const std::int64_t n = A.rows;
    double *const potential = out.potential, *const force = out.force;
    PerThread<Buffer<double>> sums(threads, W);
    parallel_for(n, 64, sums.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        double *__restrict sum = sums[slot].data;
        for (std::int64_t i = first; i < last; ++i) {
            const float *home = targets + i * W;
            double psi = 0;
            for (int c = 0; c < W; ++c) sum[c] = 0;
            const auto add = [&](const std::int32_t *index, const float *stored) {
                const Vector weight = weigh(i, index, stored);
                const float *other[8];
                for (int t = 0; t < 8; ++t) other[t] = Y + std::int64_t(index[t]) * W;
                Vector squares[8] = {}, value = {}, slope = {};
                for (int c = 0; c < W; c += 8) {
                    const Vector own = load(home + c);
                    for (int t = 0; t < 8; ++t) {
                        const Vector diff = own - load(other[t] + c);
                        squares[t] += diff * diff;
                    }
                }
                k.template read<POTENTIAL>(k.place(totals(squares)), &value, &slope);
                slope *= weight;
                for (int c = 0; c < W; c += 8) {
                    const Vector own = load(home + c);
                    Vector part = {};
                    for (int t = 0; t < 8; ++t) part += slope[t] * (own - load(other[t] + c));
                    for (int l = 0; l < 8; ++l) sum[c + l] += double(part[l]);
                }
                if constexpr (POTENTIAL) {
                    value *= weight;
                    psi += double(((value[0] + value[1]) + (value[2] + value[3])) +
                                  ((value[4] + value[5]) + (value[6] + value[7])));
                }
            };
            std::int64_t e = A.indptr[i];
            const std::int64_t end = A.indptr[i + 1];
            const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
            for (; e + 8 <= end; e += 8) add(A.indices + e, A.f32 == nullptr ? ones : A.f32 + e);
            if (e < end) {
                std::int32_t index[8];
                float stored[8];
                for (int t = 0; t < 8; ++t) {
                    index[t] = e + t < end ? A.indices[e + t] : A.indices[e];
                    stored[t] = e + t >= end ? 0.0f : A.f32 == nullptr ? 1.0f : A.f32[e + t];
                }
                add(index, stored);
            }
            for (int c = 0; c < d; ++c) force[i * d + c] = sum[c];
            if constexpr (POTENTIAL) potential[i] = psi;
        }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
