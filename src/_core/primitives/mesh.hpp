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

// A float32 sum of n nearly equal terms has a relative error of up to n 2^-25: 3 % for a million points in one cell, 3e-5
// for 1024. So sums of points are added up in steps: CHUNK points make a chunk, CHUNK chunks a larger chunk, and so on.
// Chosen.
constexpr std::int64_t CHUNK = 1024;

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

// A position along an axis, in mesh widths from the first node. Its cell is one whose spline lies inside the mesh: that
// of the nearest such position for a point outside, the first one for NaN.
template <int P, class R> struct Position {
    R u;
    int cell;
    EQ_INLINE Position(const Mesh &mesh, int axis, R y) {
        u = (y - R(mesh.origin[axis])) * R(mesh.inverse_h);
        const R first = R(P / 2 - 1), last = R(mesh.size[axis] - P / 2 - 1), inside = u > first ? u : first;
        cell = int(inside < last ? inside : last);
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
            const Position<P, R> at(mesh, c, y[c]);
            R f = at.u - R(at.cell);
            f = f < R(0) ? R(0) : f > R(1) ? R(1) : f;  // points outside are moved to the border
            spline(f, &w[c], &dw[c]);
            corner = corner * mesh.size[c] + (at.cell - (P / 2 - 1));
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

// The points sorted by strip of the first axis, and by index inside a strip: strip s contains order[start[s]] ..
// order[start[s+1] - 1]. Blocks of points are counted, and then placed, in parallel.
template <int P, class R> struct Strips {
    std::int64_t count;
    Buffer<std::int32_t> order;
    Buffer<std::int64_t> start;
    Strips(const Mesh &mesh, Points<R> Y, int threads)
        : count((mesh.size[0] + STRIP - 1) / STRIP), order(Y.n, UNINITIALIZED), start(count + 1, UNINITIALIZED) {
        const std::int64_t n = Y.n, blocks = n / 2048 < 64 ? n / 2048 + 1 : 64;
        Buffer<std::int32_t> key(n, UNINITIALIZED);
        Buffer<std::int64_t> next(blocks * count);  // first the points of a block in a strip, then where they go
        const auto for_blocks = [&](const auto &use) {
            parallel_for(blocks, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t b = first; b < last; ++b)
                    for (std::int64_t i = n * b / blocks; i < n * (b + 1) / blocks; ++i) use(i, next.data + b * count);
            });
        };
        for_blocks([&](std::int64_t i, std::int64_t *own) {
            key[i] = std::int32_t(Position<P, R>(mesh, 0, Y.data[i * Y.d]).cell / STRIP);
            ++own[key[i]];
        });
        std::int64_t total = 0;
        for (std::int64_t s = 0; s < count; ++s) {
            start[s] = total;
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int64_t size = next[b * count + s];
                next[b * count + s] = total;
                total += size;
            }
        }
        start[count] = total;
        for_blocks([&](std::int64_t i, std::int64_t *own) { order[own[key[i]]++] = std::int32_t(i); });
    }
};

// A part of the mesh, or all of it: `size` consecutive nodes from node `first` on, with one copy for each charge.
template <class R> struct Patch {
    R *data;
    std::int64_t first, size;
};

template <int D, int P, class R>
EQ_INLINE void spread_point(const Mesh &mesh, const R *Y, Charges charges, std::int64_t i, Patch<R> patch) {
    const int m = charges.m;
    const Stencil<D, P, R> stencil(mesh, Y + i * D);
    for (int q = 0; q < m; ++q) {
        const R charge = R(charges.data[i * m + q]);
        R *out = patch.data + q * patch.size;
        for_runs(mesh, stencil, [&](std::int64_t first, R weight, R, R) {
            auto *run = reinterpret_cast<Run<P, R> *>(out + (first - patch.first));
            *run = *run + (charge * weight) * stencil.w[D - 1];
        });
    }
}

// Spreads the points index(begin) .. index(end - 1) to a patch of the mesh, which `target` contains. Float32 sums of many
// points are made in chunks, each in a patch of its own, and no more than CHUNK chunks are added up one after the other:
// more of them are first made into larger chunks. A chunk has at least as many points as half the nodes it costs.
template <int D, int P, class R, class Index>
void spread_points(const Mesh &mesh, const R *Y, Charges charges, std::int64_t begin, std::int64_t end, Index index,
                   Patch<R> target, std::int64_t first, std::int64_t size) {
    const std::int64_t all = size * charges.m;
    std::int64_t chunk = CHUNK > all / 2 ? CHUNK : all / 2;
    if (std::is_same<R, double>::value || end - begin <= chunk) {
        for (std::int64_t t = begin; t < end; ++t) spread_point<D, P, R>(mesh, Y, charges, index(t), target);
        return;
    }
    while ((end - begin) / CHUNK > chunk) chunk *= CHUNK;
    Buffer<R> sums(all + MESH_PADDING);
    const Patch<R> part{sums.data, first, size};
    for (std::int64_t t = begin; t < end; t += chunk) {
        const std::int64_t last = t + chunk < end ? t + chunk : end;
        spread_points<D, P, R>(mesh, Y, charges, t, last, index, part, first, size);
        for (int q = 0; q < charges.m; ++q) {
            R *const from = sums.data + q * size, *const to = target.data + q * target.size + (first - target.first);
            for (std::int64_t k = 0; k < size; ++k) {
                to[k] += from[k];
                from[k] = R(0);
            }
        }
    }
}

// Threads never write to the same node, and the order of the sum at a node does not depend on their number.
template <int D, int P, class R>
void spread_in(const Mesh &mesh, Points<R> points, Charges charges, R *grid, int threads) {
    const std::int64_t n = points.n, nodes = mesh.nodes(), size = nodes * charges.m;
    if (size <= SMALL_MESH) {  // each share of the points gets a separate mesh
        const std::int64_t shares = n / 4096 < 8 ? n / 4096 + 1 : 8, stride = size + MESH_PADDING;
        Buffer<R> own(shares * stride, UNINITIALIZED);
        parallel_for(shares, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t s = first; s < last; ++s) {
                for (std::int64_t t = 0; t < stride; ++t) own[s * stride + t] = R(0);
                spread_points<D, P, R>(
                    mesh, points.data, charges, n * s / shares, n * (s + 1) / shares, [](std::int64_t i) { return i; },
                    {own.data + s * stride, 0, nodes}, 0, nodes);
            }
        });
        parallel_for(size, 2048, shares > 1 ? threads : 1, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t t = first; t < last; ++t) grid[t] = own[t];
            for (std::int64_t s = 1; s < shares; ++s)
                for (std::int64_t t = first; t < last; ++t) grid[t] += own[s * stride + t];
        });
        return;
    }
    const Strips<P, R> strips(mesh, points, threads);
    parallel_for(size, 1 << 15, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t t = first; t < last; ++t) grid[t] = R(0);
    });
    const auto in_order = [&](std::int64_t t) { return std::int64_t(strips.order[t]); };
    // Even strips, then odd strips: strips of the same colour never overlap.
    for (int colour = 0; colour < 2; ++colour)
        parallel_for((strips.count + 1 - colour) / 2, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t s = 2 * first + colour; s < 2 * last + colour; s += 2) {
                const std::int64_t row = nodes / mesh.size[0];  // nodes of a row along the first axis
                const std::int64_t low = s * STRIP - (P / 2 - 1), high = (s + 1) * STRIP + P / 2;
                const std::int64_t begin = low > 0 ? low : 0, end = high < mesh.size[0] ? high : mesh.size[0];
                spread_points<D, P, R>(mesh, points.data, charges, strips.start[s], strips.start[s + 1], in_order,
                                       {grid, 0, nodes}, begin * row, (end - begin) * row);
            }
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
    parallel_for(n, 512, threads, [&](std::int64_t first, std::int64_t last, int) {
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
