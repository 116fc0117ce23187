// The particle mesh: charges are spread to a regular grid with B-splines, and a potential on the grid is gathered back
// with its gradient. The convolution in between is an FFT, in Python. docs/math.md, section 4.
#pragma once
#include <type_traits>

#include "kernels.hpp"
#include "tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int STRIP = 8;  // rows of cells per strip: more than a spline is wide, so that strips touch only the next one

// Along the last axis splines are padded with zero weights to a whole vector.
template <int P> constexpr int WIDTH = P <= 4 ? 4 : 8;

// Weights of the P nodes around a point at offset f in [0, 1) of its cell, and their derivatives (Cox-de Boor recursion).
template <int P, class R> EQ_INLINE void spline(R f, R *w, R *dw) {
    w[0] = R(1) - f;
    w[1] = f;
#pragma GCC unroll 8
    for (int k = 3; k <= P; ++k) {
        const R inverse = R(1) / R(k - 1);
        if (k == P) {
            dw[0] = -w[0];
#pragma GCC unroll 8
            for (int j = 1; j < P - 1; ++j) dw[j] = w[j - 1] - w[j];
            dw[P - 1] = w[P - 2];
        }
        w[k - 1] = inverse * f * w[k - 2];
#pragma GCC unroll 8
        for (int j = 1; j < k - 1; ++j)
            w[k - j - 1] = inverse * ((f + R(j)) * w[k - j - 2] + (R(k - j) - f) * w[k - j - 1]);
        w[0] = inverse * (R(1) - f) * w[0];
    }
#pragma GCC unroll 8
    for (int j = P; j < WIDTH<P>; ++j) w[j] = dw[j] = R(0);
}

// Where a point sits: the first node it touches, and the weights along each axis.
template <int D, int P, class R> struct Stencil {
    std::int64_t corner = 0;
    alignas(32) R w[D][WIDTH<P>];
    alignas(32) R dw[D][WIDTH<P>];

    EQ_INLINE Stencil(const Mesh &mesh, const R *y) {
#pragma GCC unroll 3
        for (int c = 0; c < D; ++c) {
            const R u = (y[c] - R(mesh.origin[c])) * R(mesh.inverse_h);
            const int last = int(mesh.size[c]) - P / 2 - 1;
            int cell = int(u);  // u > 0 inside the mesh
            cell = cell < P / 2 - 1 ? P / 2 - 1 : cell > last ? last : cell;
            R f = u - R(cell);
            f = f < R(0) ? R(0) : f > R(1) ? R(1) : f;  // points outside are held at the border
            spline<P>(f, w[c], dw[c]);
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
void spread_in(const Mesh &mesh, const R *Y, std::int64_t n, const double *charges, int m, R *grid, int threads) {
    const Strips<R> strips(mesh, Y, n, D);
    const std::int64_t nodes = mesh.nodes();
    for (std::int64_t i = 0; i < nodes * m; ++i) grid[i] = R(0);
    // Even strips, then odd ones: two strips of one colour never meet, so the order of every sum is fixed.
    for (int colour = 0; colour < 2; ++colour) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (std::int64_t s = colour; s < strips.count; s += 2)
            for (std::int64_t t = strips.start[s]; t < strips.start[s + 1]; ++t) {
                const std::int64_t i = strips.order[t];
                const Stencil<D, P, R> stencil(mesh, Y + i * D);
                for (int q = 0; q < m; ++q) {
                    const R charge = R(charges[i * m + q]);
                    R *out = grid + q * nodes;
                    for_runs(mesh, stencil, [&](std::int64_t first, R weight, R, R) {
                        const R scale = charge * weight;
                        for (int j = 0; j < WIDTH<P>; ++j) out[first + j] += scale * stencil.w[D - 1][j];
                    });
                }
            }
    }
}

template <int D, int P, class R>
void gather_in(const Mesh &mesh, const R *Y, std::int64_t n, const R *grid, int m, double *potential, double *half_gradient,
               int threads) {
    const std::int64_t nodes = mesh.nodes();
    const R half = R(0.5 * mesh.inverse_h);
    constexpr int W = WIDTH<P>;
#pragma omp parallel for schedule(static, 2048) num_threads(threads)
    for (std::int64_t i = 0; i < n; ++i) {
        const Stencil<D, P, R> stencil(mesh, Y + i * D);
        for (int q = 0; q < m; ++q) {
            const R *in = grid + q * nodes;
            R v[W] = {}, v0[W] = {}, v1[W] = {};  // Σ weight · run, and with ∂weight along the axes before the last
            for_runs(mesh, stencil, [&](std::int64_t first, R weight, R d0, R d1) {
                for (int j = 0; j < W; ++j) {
                    v[j] += weight * in[first + j];
                    if constexpr (D >= 2) v0[j] += d0 * in[first + j];
                    if constexpr (D == 3) v1[j] += d1 * in[first + j];
                }
            });
            R phi = 0, g[3] = {0, 0, 0};
            for (int j = 0; j < P; ++j) {
                phi += v[j] * stencil.w[D - 1][j];
                g[D - 1] += v[j] * stencil.dw[D - 1][j];
                if constexpr (D >= 2) g[0] += v0[j] * stencil.w[D - 1][j];
                if constexpr (D == 3) g[1] += v1[j] * stencil.w[D - 1][j];
            }
            potential[i * m + q] = phi;
            for (int c = 0; c < D; ++c) half_gradient[(i * m + q) * D + c] = half * g[c];
        }
    }
}

template <class R, class Use> EQ_INLINE void with_mesh(const Mesh &mesh, Use use) {
    const auto width = [&](auto D) {
        if (mesh.order == 4) use(D, std::integral_constant<int, 4>{});
        else use(D, std::integral_constant<int, 6>{});
    };
    if (mesh.d == 1) width(std::integral_constant<int, 1>{});
    else if (mesh.d == 2) width(std::integral_constant<int, 2>{});
    else width(std::integral_constant<int, 3>{});
}

template <class R>
void spread(const Mesh &mesh, const R *Y, std::int64_t n, const double *charges, int m, R *grid, int threads) {
    with_mesh<R>(mesh, [&](auto D, auto P) { spread_in<D, P, R>(mesh, Y, n, charges, m, grid, threads); });
}

template <class R>
void gather(const Mesh &mesh, const R *Y, std::int64_t n, const R *grid, int m, double *potential, double *half_gradient,
            int threads) {
    with_mesh<R>(mesh, [&](auto D, auto P) {
        gather_in<D, P, R>(mesh, Y, n, grid, m, potential, half_gradient, threads);
    });
}

// Near field: adds Σ_{j≠i, r<a} c_j u(d2) and Σ c_j u'(d2)(y_i - y_j) for a radial function u known by its table, with
// the points binned in cells of side a. Each point sums its 3^d cells in a fixed order.
template <class R>
void near(const Mesh &cells, const Table &table, const R *Y, std::int64_t n, int d, const double *charges, int m,
          double *potential, double *half_gradient, int threads) {
    const std::int64_t count = cells.nodes();
    const R limit = R(1 / (cells.inverse_h * cells.inverse_h));
    Buffer<std::int64_t> start(count + 1), key(n);
    Buffer<std::int32_t> order(n);
    const auto cell_of = [&](std::int64_t i, int c) {
        std::int64_t k = static_cast<std::int64_t>((Y[i * d + c] - R(cells.origin[c])) * R(cells.inverse_h));
        return k < 0 ? std::int64_t(0) : k >= cells.size[c] ? cells.size[c] - 1 : k;
    };
    for (std::int64_t i = 0; i < n; ++i) {
        key[i] = 0;
        for (int c = 0; c < d; ++c) key[i] = key[i] * cells.size[c] + cell_of(i, c);
        ++start[key[i] + 1];
    }
    for (std::int64_t k = 0; k < count; ++k) start[k + 1] += start[k];
    Buffer<std::int64_t> next(count);
    for (std::int64_t k = 0; k < count; ++k) next[k] = start[k];
    for (std::int64_t i = 0; i < n; ++i) order[next[key[i]]++] = std::int32_t(i);

    Buffer<R> sorted(n * d), sorted_charge(n * m);
    for (std::int64_t t = 0; t < n; ++t) {
        for (int c = 0; c < d; ++c) sorted[t * d + c] = Y[std::int64_t(order[t]) * d + c];
        for (int q = 0; q < m; ++q) sorted_charge[t * m + q] = R(charges[std::int64_t(order[t]) * m + q]);
    }
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t i = order[t];
        std::int64_t home[3] = {0, 0, 0}, rest = key[i];
        for (int c = d - 1; c >= 0; --c) {
            home[c] = rest % cells.size[c];
            rest /= cells.size[c];
        }
        for (std::int64_t a = home[0] - (d > 0); a <= home[0] + (d > 0); ++a)
            for (std::int64_t b = home[1] - (d > 1); b <= home[1] + (d > 1); ++b) {
                if (a < 0 || a >= cells.size[0] || b < 0 || (d > 1 && b >= cells.size[1])) continue;
                std::int64_t row = d > 1 ? a * cells.size[1] + b : a, first = row, last = row;
                if (d > 2) {  // the cells along the last axis are neighbours in memory
                    first = row * cells.size[2] + (home[2] > 0 ? home[2] - 1 : 0);
                    last = row * cells.size[2] + (home[2] + 1 < cells.size[2] ? home[2] + 1 : home[2]);
                }
                for (std::int64_t s = start[first]; s < start[last + 1]; ++s) {
                    R d2 = 0;
                    for (int c = 0; c < d; ++c) {
                        const R diff = sorted[t * d + c] - sorted[s * d + c];
                        d2 += diff * diff;
                    }
                    if (d2 >= limit || s == t) continue;
                    R value, slope;
                    look_up(table, d2, &value, &slope);
                    for (int q = 0; q < m; ++q) {
                        const R charge = sorted_charge[s * m + q];
                        potential[i * m + q] += charge * value;
                        for (int c = 0; c < d; ++c)
                            half_gradient[(i * m + q) * d + c] +=
                                charge * slope * (sorted[t * d + c] - sorted[s * d + c]);
                    }
                }
            }
    }
}

}  // namespace EQ_ISA
}  // namespace eq
