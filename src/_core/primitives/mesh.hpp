// The particle mesh: B-splines spread charges to a regular grid, and interpolate a potential on the grid and its
// gradient at the points. fourier.hpp has the convolution in between, near_field.hpp the pairs closer than the mesh
// resolves. docs/math.md, section 10.
#pragma once
#include <type_traits>

#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr std::int64_t SMALL_MESH = 1 << 14;  // elements up to which each share of the points gets a separate mesh
constexpr int STRIP = 8;  // rows of cells per strip: wider than a spline, so that a strip overlaps only the next one

static_assert(STRIP > MESH_ORDER, "strips of the same colour must not overlap");

// The nodes of a spline along one axis are one vector, padded with zero weights to a power of two.
template <int P> constexpr int WIDTH = P <= 4 ? 4 : 8;
template <int P, class R> struct Lanes {
    typedef R type __attribute__((vector_size(WIDTH<P> * sizeof(R)), aligned(sizeof(R)), may_alias));
};
template <int P, class R> using Run = typename Lanes<P, R>::type;

template <int P, class R> EQ_INLINE Run<P, R> load(const R *from) { return *reinterpret_cast<const Run<P, R> *>(from); }
template <int P, class R> EQ_INLINE R sum(Run<P, R> x) {
    R total = 0;
    for (int j = 0; j < P; ++j) total += x[j];
    return total;
}

// The weights of the P nodes around a point at offset f in [0, 1) of its cell, as polynomials in f: `weight[k][j]` is
// the coefficient of f^k at node j, from the Cox-de Boor recursion.
template <int P, class R> struct Spline {
    R weight[P][WIDTH<P>] = {}, slope[P - 1][WIDTH<P>] = {};

    constexpr Spline() {
        double w[P][P] = {};  // w[j][k]
        w[0][0] = 1;
        w[0][1] = -1;
        w[1][1] = 1;
        for (int order = 3; order <= P; ++order) {
            double next[P][P] = {};
            for (int j = 0; j < order; ++j)
                for (int k = 0; k < P; ++k) {
                    // (f + order - 1 - j) w_{j-1} + (j + 1 - f) w_j, over order - 1
                    const double left = j > 0 ? w[j - 1][k] : 0, right = j < order - 1 ? w[j][k] : 0;
                    next[j][k] += ((order - 1 - j) * left + (j + 1) * right) / (order - 1);
                    if (k + 1 < P) next[j][k + 1] += (left - right) / (order - 1);
                }
            for (int j = 0; j < P; ++j)
                for (int k = 0; k < P; ++k) w[j][k] = next[j][k];
        }
        for (int j = 0; j < P; ++j)
            for (int k = 0; k < P; ++k) {
                weight[k][j] = R(w[j][k]);
                if (k > 0) slope[k - 1][j] = R(k * w[j][k]);
            }
    }

    EQ_INLINE void operator()(R f, Run<P, R> *w, Run<P, R> *dw) const {
        *w = load<P>(weight[P - 1]);
        *dw = load<P>(slope[P - 2]);
#pragma GCC unroll 8
        for (int k = P - 2; k >= 0; --k) *w = *w * f + load<P>(weight[k]);
#pragma GCC unroll 8
        for (int k = P - 3; k >= 0; --k) *dw = *dw * f + load<P>(slope[k]);
    }
};

// The nodes that a point touches: the first of them, and the weights along each axis.
template <int D, int P, class R> struct Stencil {
    std::int64_t corner = 0;
    Run<P, R> w[D], dw[D];

    EQ_INLINE Stencil(const Mesh &mesh, const R *y) {
        static constexpr Spline<P, R> spline;
#pragma GCC unroll 3
        for (int c = 0; c < D; ++c) {
            const R u = (y[c] - R(mesh.origin[c])) * R(mesh.inverse_h);
            const int last = int(mesh.size[c]) - P / 2 - 1;
            int cell = int(u);  // u > 0 inside the mesh
            cell = cell < P / 2 - 1 ? P / 2 - 1 : cell > last ? last : cell;
            R f = u - R(cell);
            f = f < R(0) ? R(0) : f > R(1) ? R(1) : f;  // points outside are moved to the border
            spline(f, &w[c], &dw[c]);
            corner = corner * mesh.size[c] + (cell - (P / 2 - 1));
        }
    }
};

// Calls use(first node of a run along the last axis, its weight, derivatives of the weight along the other axes).
template <int D, int P, class R, class Use>
EQ_INLINE void for_runs(const Mesh &mesh, const Stencil<D, P, R> &s, Use use) {
    if constexpr (D == 1) {
        use(s.corner, R(1), R(0), R(0));
    } else if constexpr (D == 2) {
#pragma GCC unroll 8
        for (int a = 0; a < P; ++a) use(s.corner + a * mesh.size[1], s.w[0][a], s.dw[0][a], R(0));
    } else {
        for (int a = 0; a < P; ++a)
#pragma GCC unroll 8
            for (int b = 0; b < P; ++b)
                use(s.corner + (a * mesh.size[1] + b) * mesh.size[2], s.w[0][a] * s.w[1][b], s.dw[0][a] * s.w[1][b],
                    s.w[0][a] * s.dw[1][b]);
    }
}

// The points sorted by strip of the first axis: strip s contains order[start[s]] .. order[start[s+1] - 1].
template <class R> struct Strips {
    std::int64_t count;
    Buffer<std::int32_t> order;
    Buffer<std::int64_t> start;
    Strips(const Mesh &mesh, Points<R> Y) : count((mesh.size[0] + STRIP - 1) / STRIP), order(Y.n), start(count + 1) {
        const std::int64_t n = Y.n;
        Buffer<std::int32_t> key(n);
        for (std::int64_t i = 0; i < n; ++i) {
            const R u = (Y.data[i * Y.d] - R(mesh.origin[0])) * R(mesh.inverse_h);
            int s = u > R(0) ? int(u) / STRIP : 0;
            s = s >= int(count) ? int(count) - 1 : s;
            key[i] = std::int32_t(s);
            ++start[s + 1];
        }
        for (std::int64_t s = 0; s < count; ++s) start[s + 1] += start[s];
        Buffer<std::int64_t> next(count);
        for (std::int64_t s = 0; s < count; ++s) next[s] = start[s];
        for (std::int64_t i = 0; i < n; ++i) order[next[key[i]]++] = std::int32_t(i);
    }
};

template <int D, int P, class R>
EQ_INLINE void spread_point(const Mesh &mesh, const R *Y, Charges charges, std::int64_t i, R *grid) {
    const int m = charges.m;
    const Stencil<D, P, R> stencil(mesh, Y + i * D);
    for (int q = 0; q < m; ++q) {
        const R charge = R(charges.data[i * m + q]);
        R *out = grid + q * mesh.nodes();
        for_runs(mesh, stencil, [&](std::int64_t first, R weight, R, R) {
            auto *run = reinterpret_cast<Run<P, R> *>(out + first);
            *run = *run + (charge * weight) * stencil.w[D - 1];
        });
    }
}

// Threads never write to the same node, and the order of the sum at a node does not depend on their number.
template <int D, int P, class R>
void spread_in(const Mesh &mesh, Points<R> points, Charges charges, R *grid, int threads) {
    const std::int64_t n = points.n, size = mesh.nodes() * charges.m;
    if (size <= SMALL_MESH) {  // each share of the points gets a separate mesh
        const std::int64_t shares = n / 4096 < 8 ? n / 4096 + 1 : 8, stride = size + MESH_PADDING;
        Buffer<R> own(shares * stride);
        parallel_for(shares, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t s = first; s < last; ++s)
                for (std::int64_t i = n * s / shares; i < n * (s + 1) / shares; ++i)
                    spread_point<D, P, R>(mesh, points.data, charges, i, own.data + s * stride);
        });
        for (std::int64_t t = 0; t < size; ++t) grid[t] = own[t];
        for (std::int64_t s = 1; s < shares; ++s)
            for (std::int64_t t = 0; t < size; ++t) grid[t] += own[s * stride + t];
        return;
    }
    const Strips<R> strips(mesh, points);
    for (std::int64_t t = 0; t < size; ++t) grid[t] = R(0);
    // Even strips, then odd strips: strips of the same colour never overlap.
    for (int colour = 0; colour < 2; ++colour)
        parallel_for((strips.count + 1 - colour) / 2, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t s = 2 * first + colour; s < 2 * last + colour; s += 2)
                for (std::int64_t t = strips.start[s]; t < strips.start[s + 1]; ++t)
                    spread_point<D, P, R>(mesh, points.data, charges, strips.order[t], grid);
        });
}

template <int D, int P, class R>
void gather_in(const Mesh &mesh, Points<R> points, const R *grid, int m, FieldSums out, int threads) {
    const std::int64_t n = points.n, nodes = mesh.nodes();
    const R *const Y = points.data;
    const R half = R(0.5 * mesh.inverse_h);
    const auto gather_point = [&](std::int64_t i) {
        const Stencil<D, P, R> stencil(mesh, Y + i * D);
        for (int q = 0; q < m; ++q) {
            const R *in = grid + q * nodes;
            Run<P, R> v = {}, v0 = {}, v1 = {};  // Σ weight · run, and the same with the derivatives of the weight
            for_runs(mesh, stencil, [&](std::int64_t first, R weight, R d0, R d1) {
                const Run<P, R> run = load<P>(in + first);
                v += weight * run;
                if constexpr (D >= 2) v0 += d0 * run;
                if constexpr (D == 3) v1 += d1 * run;
            });
            const R phi = sum<P, R>(v * stencil.w[D - 1]);
            R g[3] = {0, 0, 0};
            g[D - 1] = sum<P, R>(v * stencil.dw[D - 1]);
            if constexpr (D >= 2) g[0] = sum<P, R>(v0 * stencil.w[D - 1]);
            if constexpr (D == 3) g[1] = sum<P, R>(v1 * stencil.w[D - 1]);
            out.potential[i * m + q] = phi;
            for (int c = 0; c < D; ++c) out.half_gradient[(i * m + q) * D + c] = half * g[c];
        }
    };
    parallel_for(n, 2048, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) gather_point(i);
    });
}

template <class Use> EQ_INLINE void with_mesh(const Mesh &mesh, Use use) {
    if (mesh.d == 1) use(std::integral_constant<int, 1>{});
    else if (mesh.d == 2) use(std::integral_constant<int, 2>{});
    else use(std::integral_constant<int, 3>{});
}

template <class R> void spread(const Mesh &mesh, Points<R> Y, Charges charges, R *grid, int threads) {
    with_mesh(mesh, [&](auto D) { spread_in<D, MESH_ORDER, R>(mesh, Y, charges, grid, threads); });
}

template <class R> void gather(const Mesh &mesh, Points<R> Y, const R *grid, int m, FieldSums out, int threads) {
    with_mesh(mesh, [&](auto D) { gather_in<D, MESH_ORDER, R>(mesh, Y, grid, m, out, threads); });
}

}  // namespace EQ_ISA
}  // namespace eq
