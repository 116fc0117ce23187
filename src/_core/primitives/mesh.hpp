// The particle mesh: charges are spread to a regular grid with B-splines, and a potential on the grid is gathered back
// with its gradient. The convolution in between is in fourier.hpp. docs/math.md, section 10.
#pragma once
#include <type_traits>

#include "primitives/table.hpp"
#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int ORDER = 6;  // quintic splines, as in engines/plan.py
constexpr std::int64_t SMALL_MESH = 1 << 14;  // numbers on a mesh below which each share of the points has its own
constexpr int STRIP = 8;  // rows of cells per strip: more than a spline is wide, so that strips touch only the next one

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

// The weights of the P nodes around a point at offset f in [0, 1) of its cell, as polynomials of f: `weight[k][j]` is the
// coefficient of f^k at node j, from the Cox-de Boor recursion.
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

// Where a point sits: the first node it touches, and the weights along each axis.
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
            f = f < R(0) ? R(0) : f > R(1) ? R(1) : f;  // points outside are held at the border
            spline(f, &w[c], &dw[c]);
            corner = corner * mesh.size[c] + (cell - (P / 2 - 1));
        }
    }
};

// Calls use(first node of a run along the last axis, its weight, and ∂weight along the axes before the last).
template <int D, int P, class R, class Use> EQ_INLINE void for_runs(const Mesh &mesh, const Stencil<D, P, R> &s, Use use) {
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

// Order of the points by strip of the first axis; strip s holds order[start[s]] .. order[start[s+1] - 1].
template <class R> struct Strips {
    std::int64_t count;
    Buffer<std::int32_t> order;
    Buffer<std::int64_t> start;
    Strips(const Mesh &mesh, const R *Y, std::int64_t n, int d)
        : count((mesh.size[0] + STRIP - 1) / STRIP), order(n), start(count + 1) {
        Buffer<std::int32_t> key(n);
        for (std::int64_t i = 0; i < n; ++i) {
            const R u = (Y[i * d] - R(mesh.origin[0])) * R(mesh.inverse_h);
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
EQ_INLINE void spread_point(const Mesh &mesh, const R *Y, const double *charges, int m, std::int64_t i, R *grid) {
    const Stencil<D, P, R> stencil(mesh, Y + i * D);
    for (int q = 0; q < m; ++q) {
        const R charge = R(charges[i * m + q]);
        R *out = grid + q * mesh.nodes();
        for_runs(mesh, stencil, [&](std::int64_t first, R weight, R, R) {
            auto *run = reinterpret_cast<Run<P, R> *>(out + first);
            *run = *run + (charge * weight) * stencil.w[D - 1];
        });
    }
}

// Threads never write to the same node, and every node is summed in an order that does not depend on their number.
template <int D, int P, class R>
void spread_in(const Mesh &mesh, const R *Y, std::int64_t n, const double *charges, int m, R *grid, int threads) {
    const std::int64_t size = mesh.nodes() * m;
    if (size <= SMALL_MESH) {  // shares of the points go to meshes of their own
        const std::int64_t shares = n / 4096 < 8 ? n / 4096 + 1 : 8, stride = size + 8;
        Buffer<R> own(shares * stride);
#pragma omp parallel for schedule(static, 1) num_threads(threads < shares ? threads : int(shares))
        for (std::int64_t s = 0; s < shares; ++s)
            for (std::int64_t i = n * s / shares; i < n * (s + 1) / shares; ++i)
                spread_point<D, P, R>(mesh, Y, charges, m, i, own.data + s * stride);
        for (std::int64_t t = 0; t < size; ++t) grid[t] = own[t];
        for (std::int64_t s = 1; s < shares; ++s)
            for (std::int64_t t = 0; t < size; ++t) grid[t] += own[s * stride + t];
        return;
    }
    const Strips<R> strips(mesh, Y, n, D);
    for (std::int64_t t = 0; t < size; ++t) grid[t] = R(0);
    for (int colour = 0; colour < 2; ++colour) {  // even strips, then odd ones: two of one colour never meet
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (std::int64_t s = colour; s < strips.count; s += 2)
            for (std::int64_t t = strips.start[s]; t < strips.start[s + 1]; ++t)
                spread_point<D, P, R>(mesh, Y, charges, m, strips.order[t], grid);
    }
}

template <int D, int P, class R>
void gather_in(const Mesh &mesh, const R *Y, std::int64_t n, const R *grid, int m, double *potential, double *half_gradient,
               int threads) {
    const std::int64_t nodes = mesh.nodes();
    const R half = R(0.5 * mesh.inverse_h);
#pragma omp parallel for schedule(static, 2048) num_threads(threads)
    for (std::int64_t i = 0; i < n; ++i) {
        const Stencil<D, P, R> stencil(mesh, Y + i * D);
        for (int q = 0; q < m; ++q) {
            const R *in = grid + q * nodes;
            Run<P, R> v = {}, v0 = {}, v1 = {};  // Σ weight · run, and with ∂weight along the axes before the last
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
            potential[i * m + q] = phi;
            for (int c = 0; c < D; ++c) half_gradient[(i * m + q) * D + c] = half * g[c];
        }
    }
}

template <class Use> EQ_INLINE void with_mesh(const Mesh &mesh, Use use) {
    if (mesh.d == 1) use(std::integral_constant<int, 1>{});
    else if (mesh.d == 2) use(std::integral_constant<int, 2>{});
    else use(std::integral_constant<int, 3>{});
}

template <class R>
void spread(const Mesh &mesh, const R *Y, std::int64_t n, const double *charges, int m, R *grid, int threads) {
    with_mesh(mesh, [&](auto D) { spread_in<D, ORDER, R>(mesh, Y, n, charges, m, grid, threads); });
}

template <class R>
void gather(const Mesh &mesh, const R *Y, std::int64_t n, const R *grid, int m, double *potential, double *half_gradient,
            int threads) {
    with_mesh(mesh, [&](auto D) {
        gather_in<D, ORDER, R>(mesh, Y, n, grid, m, potential, half_gradient, threads);
    });
}

// Points sorted into cells, axis by axis in columns, the last axis of cells running fastest.
template <int D, class R> struct Cells {
    const Mesh &mesh;
    std::int64_t n, stride;  // columns are padded, so that eight points can be read from any
    Buffer<std::int64_t> start;  // cell k holds the points start[k] .. start[k + 1] - 1
    Buffer<std::int32_t> order;
    Buffer<R> axes;

    Cells(const Mesh &cells, const R *Y, std::int64_t n_)
        : mesh(cells), n(n_), stride(n_ + 8), start(cells.nodes() + 1), order(n_), axes(stride * D) {
        const std::int64_t count = mesh.nodes();
        Buffer<std::int64_t> key(n), next(count);
        for (std::int64_t i = 0; i < n; ++i) {
            for (int c = 0; c < D; ++c) key[i] = key[i] * mesh.size[c] + cell(Y[i * D + c], c);
            ++start[key[i] + 1];
        }
        for (std::int64_t k = 0; k < count; ++k) start[k + 1] += start[k];
        for (std::int64_t k = 0; k < count; ++k) next[k] = start[k];
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t s = next[key[i]]++;
            order[s] = std::int32_t(i);
            for (int c = 0; c < D; ++c) axes[c * stride + s] = Y[i * D + c];
        }
    }

    EQ_INLINE std::int64_t cell(R y, int c) const {
        const R u = (y - R(mesh.origin[c])) * R(mesh.inverse_h);
        const std::int64_t k = u > R(0) ? static_cast<std::int64_t>(u) : 0;
        return k >= mesh.size[c] ? mesh.size[c] - 1 : k;
    }

    // Calls use(first, last) for the runs of points in the cells around y.
    template <class Use> EQ_INLINE void around(const R *y, Use use) const {
        std::int64_t low[3] = {0, 0, 0}, high[3] = {0, 0, 0};  // the last D axes are those of the mesh
        for (int c = 0; c < D; ++c) {
            const std::int64_t k = cell(y[c], c);
            low[3 - D + c] = k > 0 ? k - 1 : 0;
            high[3 - D + c] = k + 1 < mesh.size[c] ? k + 1 : k;
        }
        for (std::int64_t a = low[0]; a <= high[0]; ++a)
            for (std::int64_t b = low[1]; b <= high[1]; ++b) {
                const std::int64_t row = D == 1 ? 0 : D == 2 ? b * mesh.size[1] : (a * mesh.size[1] + b) * mesh.size[2];
                use(start[row + low[2]], start[row + high[2] + 1]);
            }
    }
};

// Eight sources at a time; the table is 0 beyond the radius, so that no pair needs a test.
template <class R> struct Pack {
    typedef R type __attribute__((vector_size(8 * sizeof(R)), aligned(sizeof(R)), may_alias));
};
EQ_INLINE void near_eight(const Table &table, Pack<float>::type d2, Pack<float>::type *value, Pack<float>::type *slope) {
    Vector v = {}, s = {};
    look_up_eight<true>(table, {table, Vector(d2)}, &v, &s);
    *value = v;
    *slope = s;
}
EQ_INLINE void near_eight(const Table &table, Pack<double>::type d2, Pack<double>::type *value, Pack<double>::type *slope) {
    for (int l = 0; l < 8; ++l) {
        double v, s;
        look_up(table, double(d2[l]), &v, &s);
        (*value)[l] = v;
        (*slope)[l] = s;
    }
}

// Near field: adds Σ_{j≠i, r<a} c_j u(d2) and Σ c_j u'(d2)(t_i - y_j) at targets t for a radial function u known by its
// table, with the sources binned in cells of side a. Each target sums the cells around it in a fixed order. Without
// `targets` they are the sources themselves.
template <int D, class R>
void near_in(const Mesh &mesh, const Table &table, const R *targets, std::int64_t n_targets, const R *Y, std::int64_t n,
             const double *charges, int m, double *potential, double *half_gradient, int threads) {
    using Eight = typename Pack<R>::type;
    const bool same = targets == nullptr;
    const Cells<D, R> cells(mesh, Y, n);
    const std::int64_t stride = cells.stride;
    Buffer<R> charge(stride * m);
    for (std::int64_t s = 0; s < n; ++s)
        for (int q = 0; q < m; ++q) charge[q * stride + s] = R(charges[std::int64_t(cells.order[s]) * m + q]);
    const Eight lane = {0, 1, 2, 3, 4, 5, 6, 7};
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (std::int64_t t = 0; t < (same ? n : n_targets); ++t) {
        const std::int64_t i = same ? cells.order[t] : t, self = same ? t : -1;
        R home[D];
        for (int c = 0; c < D; ++c) home[c] = same ? cells.axes[c * stride + t] : targets[t * D + c];
        for (int q = 0; q < m; ++q) {
            Eight phi = {}, force[D] = {};
            cells.around(home, [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t s = first; s < last; s += 8) {
                    Eight diff[D], d2 = {}, value, slope;
                    for (int c = 0; c < D; ++c) {
                        diff[c] = home[c] - *reinterpret_cast<const Eight *>(cells.axes.data + c * stride + s);
                        d2 += diff[c] * diff[c];
                    }
                    near_eight(table, d2, &value, &slope);
                    Eight weight = *reinterpret_cast<const Eight *>(charge.data + q * stride + s);
                    weight = (lane < R(last - s)) & (lane != R(self - s)) ? weight : Eight{};
                    phi += weight * value;
                    for (int c = 0; c < D; ++c) force[c] += weight * slope * diff[c];
                }
            });
            double total = 0;
            for (int l = 0; l < 8; ++l) total += phi[l];
            potential[i * m + q] += total;
            for (int c = 0; c < D; ++c) {
                double pull = 0;
                for (int l = 0; l < 8; ++l) pull += force[c][l];
                half_gradient[(i * m + q) * D + c] += pull;
            }
        }
    }
}

template <class R>
void near(const Mesh &cells, const Table &table, const R *targets, std::int64_t n_targets, const R *Y, std::int64_t n, int d,
          const double *charges, int m, double *potential, double *half_gradient, int threads) {
    const auto run = [&](auto D) {
        near_in<D, R>(cells, table, targets, n_targets, Y, n, charges, m, potential, half_gradient, threads);
    };
    if (d == 1) run(std::integral_constant<int, 1>{});
    else if (d == 2) run(std::integral_constant<int, 2>{});
    else run(std::integral_constant<int, 3>{});
}

}  // namespace EQ_ISA
}  // namespace eq
