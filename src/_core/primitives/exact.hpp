// The two primitives by direct summation: the field in O(n²), the edges with one term per stored pair.
#pragma once
#include "primitives/kernels.hpp"
#include "primitives/pairs.hpp"
#include "primitives/sparse_edges.hpp"
#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

// The field of n points at the targets of a space; if the targets are the points themselves, each without itself.
template <bool SELF, class R, class S>
void field_in_space(const Kernel &kernel, Charges charges, const S &space, std::int64_t targets, std::int64_t n,
                    FieldSums out, int threads) {
    const int d = space.d, m = charges.m;
    const Columns<double> C64(Points<double>{charges.data, n, m});  // padded with zeros: the padding has no charge
    Buffer<R> C(C64.stride * m);
    for (std::int64_t i = 0; i < C64.stride * m; ++i) C[i] = R(C64.data[i]);

    threads = useful_threads(threads, double(targets) * double(n) * m);
    PerThread<Buffer<R>> differences(threads, std::int64_t(d) * TILE);
    PerThread<Buffer<double>> sums(threads, std::int64_t(m) * (d + 1));
    with_kernel<R>(kernel, [&](auto given) {
        const auto k = space.kernel(given);
        const std::int64_t chunk = targets < 4096 ? targets / 64 + 1 : 64;  // few targets, as in checks, for all threads
        parallel_for(targets, chunk, sums.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
            Pairs<TILE, R> pairs(differences[slot].data);
            double *__restrict sum = sums[slot].data;
            alignas(64) R value[TILE], slope[TILE], charge_slope[TILE];
            for (std::int64_t i = first; i < last; ++i) {
                for (int s = 0; s < m * (d + 1); ++s) sum[s] = 0;
                for (std::int64_t start = 0; start < n; start += TILE) {
                    space.consecutive(pairs, i, start);
                    for (int t = 0; t < TILE; ++t) value_and_slope(k, pairs.d2[t], &value[t], &slope[t]);
                    if (SELF && i >= start && i < start + TILE) value[i - start] = slope[i - start] = R(0);  // j ≠ i
                    for (int q = 0; q < m; ++q) {
                        const R *charge = C.data + q * C64.stride + start;
                        for (int t = 0; t < TILE; ++t) charge_slope[t] = charge[t] * slope[t];
                        double *total = sum + q * (d + 1);
                        total[0] += dot<TILE>(charge, value);
                        for (int c = 0; c < d; ++c) total[c + 1] += dot<TILE>(charge_slope, pairs.component(c));
                    }
                }
                for (int q = 0; q < m; ++q) {
                    out.potential[i * m + q] = sum[q * (d + 1)];
                    for (int c = 0; c < d; ++c) out.half_gradient[(i * m + q) * d + c] = sum[q * (d + 1) + c + 1];
                    space.finish(i, out.half_gradient + (i * m + q) * d);
                }
            }
        });
    });
}

template <class R> void field(const Kernel &kernel, Charges charges, Points<R> points, FieldSums out, int threads) {
    const Columns<R> Y(points);
    field_in_space<true, R>(kernel, charges, FlatSpace<R>(Y), points.n, points.n, out, threads);
}

// The arrays of one tile of edges.
template <int TILE, class R> struct EdgeTile {
    alignas(64) R weight[TILE], log_k[TILE], slope[TILE], psi[TILE];
};

// One row of edges, tile by tile: `load` fills in the pairs and the weights of a tile. With e = b + 1,
// k^b k' = k^e (k'/k) and ψ_b = k^e / e; near e = 0, ψ_b is (k^e - 1) / e by expm1, and log k at e = 0.
template <int TILE, class R, class K, class Load>
EQ_INLINE void edge_row(const K &k, R e, int d, std::int64_t length, Pairs<TILE, R> &pairs, EdgeTile<TILE, R> &tile,
                        Load load, double *potential, double *force) {
    const bool near_log = e < R(0.0625) && e > R(-0.0625);
    const R inverse_e = e == R(0) ? R(0) : R(1) / e;
    double psi = 0;
    for (int c = 0; c < d; ++c) force[c] = 0;
    for (std::int64_t start = 0; start < length; start += TILE) {
        load(start);
        if (e == R(0) && potential == nullptr) {
            for (int t = 0; t < TILE; ++t) tile.slope[t] = tile.weight[t] * k(pairs.d2[t]).log_slope;
        } else {
            for (int t = 0; t < TILE; ++t) {
                const Radial<R> r = k(pairs.d2[t]);
                tile.log_k[t] = r.log_k;
                tile.slope[t] = tile.weight[t] * r.log_slope;
            }
            if (e != R(0))
                for (int t = 0; t < TILE; ++t) {
                    const R power = exp(e * tile.log_k[t]);
                    tile.psi[t] = power * inverse_e;
                    tile.slope[t] *= power;
                }
            if (e != R(0) && near_log)
                for (int t = 0; t < TILE; ++t) tile.psi[t] = expm1(e * tile.log_k[t]) * inverse_e;
            if (potential != nullptr) psi += dot<TILE>(tile.weight, e == R(0) ? tile.log_k : tile.psi);
        }
        for (int c = 0; c < d; ++c) force[c] += dot<TILE>(tile.slope, pairs.component(c));
    }
    if (potential != nullptr) *potential = psi;
}

// All rows of edges. `load` fills in the pairs and the weights of a tile of row i.
template <int TILE, class R, class K, class S, class Length, class Load>
EQ_INLINE void edge_rows(const K &k, R e, std::int64_t n, const S &space, EdgeSums out, int threads, Length length,
                         Load load) {
    const int d = space.d;
    PerThread<Buffer<R>> differences(threads, std::int64_t(d) * TILE);
    parallel_for(n, 64, differences.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        Pairs<TILE, R> pairs(differences[slot].data);
        EdgeTile<TILE, R> tile;
        for (std::int64_t i = first; i < last; ++i) {
            edge_row<TILE>(
                k, e, d, length(i), pairs, tile, [&](std::int64_t start) { load(i, start, pairs, tile.weight); },
                out.potential == nullptr ? nullptr : out.potential + i, out.force + i * d);
            space.finish(i, out.force + i * d);
        }
    });
}

template <int TILE, class R> EQ_INLINE void load_weights(const Weights &A, std::int64_t from, int count, R *weight) {
    if (A.f32 != nullptr)
        for (int t = 0; t < count; ++t) weight[t] = R(A.f32[from + t]);
    else
        for (int t = 0; t < count; ++t) weight[t] = R(A.f64[from + t]);
    for (int t = count; t < TILE; ++t) weight[t] = R(0);
}

// The edges of n targets to the points of a space: those that a CSR matrix lists, or all pairs of one set of n points.
template <class R, class S>
void edges_in_space(const Kernel &kernel, double b, const Weights &A, const S &space, std::int64_t n, EdgeSums out,
                    int threads) {
    const R e = R(b + 1);
    threads = useful_threads(threads, double(A.indptr == nullptr ? n * n : A.entries()));
    with_kernel<R>(kernel, [&](auto given) {
        const auto k = space.kernel(given);
        if (A.indptr == nullptr)
            edge_rows<TILE>(
                k, e, n, space, out, threads, [&](std::int64_t) { return n; },
                [&](std::int64_t i, std::int64_t start, Pairs<TILE, R> &pairs, R *weight) {
                    space.consecutive(pairs, i, start);
                    load_weights<TILE>(A, i * n + start, int(n - start < TILE ? n - start : TILE), weight);
                    if (i >= start && i < start + TILE) weight[i - start] = R(0);
                });
        else
            edge_rows<SHORT>(
                k, e, n, space, out, threads, [&](std::int64_t i) { return A.length(i); },
                [&](std::int64_t i, std::int64_t start, Pairs<SHORT, R> &pairs, R *weight) {
                    const std::int64_t from = A.indptr[i] + start, left = A.indptr[i + 1] - from;
                    const int count = int(left < SHORT ? left : SHORT);
                    space.listed(pairs, i, A.indices + from, count);
                    load_weights<SHORT>(A, from, count, weight);
                });
    });
}

template <class R>
void edges(const Kernel &kernel, double b, const Weights &A, Points<R> points, EdgeSums out, int threads) {
    if constexpr (sizeof(R) == sizeof(float))
        if (A.indptr != nullptr && A.f32 != nullptr && b == -1 && sparse_edges(kernel, A, points, points, out, threads))
            return;
    const Columns<R> Y(points);
    edges_in_space<R>(kernel, b, A, FlatSpace<R>(Y), points.n, out, threads);
}

// Both primitives in a curved space. Without targets, they are the points themselves.
template <class R, class Use> EQ_INLINE void with_space(const Space &space, Points<R> targets, Points<R> Y, Use use) {
    const Points<R> at = targets.data == nullptr ? Y : targets;
    if (space.kind == Space::Kind::torus) use(TorusSpace<R>(space, at, Y));
    else use(HyperbolicSpace<R>(space, at, Y));
}

template <class R> void curved_field(const Space &space, const Kernel &kernel, Charges charges, Points<R> targets,
                                     Points<R> Y, FieldSums out, int threads) {
    with_space(space, targets, Y, [&](const auto &in) {
        if (targets.data == nullptr) field_in_space<true, R>(kernel, charges, in, Y.n, Y.n, out, threads);
        else field_in_space<false, R>(kernel, charges, in, targets.n, Y.n, out, threads);
    });
}

template <class R> void curved_edges(const Space &space, const Kernel &kernel, double b, const Weights &A,
                                     Points<R> targets, Points<R> Y, EdgeSums out, int threads) {
    if constexpr (sizeof(R) == sizeof(float))
        if (A.indptr != nullptr && A.f32 != nullptr && b == -1 &&
            curved_sparse_edges(space, kernel, A, targets, Y, out, threads))
            return;
    with_space(space, targets, Y, [&](const auto &in) {
        edges_in_space<R>(kernel, b, A, in, targets.data == nullptr ? Y.n : targets.n, out, threads);
    });
}

}  // namespace EQ_ISA
}  // namespace eq
