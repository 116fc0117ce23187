// The near field of the mesh: pairs closer than the mesh resolves, summed directly with cell lists. docs/math.md,
// section 10.
#pragma once
#include <type_traits>

#include "primitives/mesh.hpp"
#include "primitives/table.hpp"
#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

// Points sorted by cell; the last axis of the cells varies fastest.
template <int D, class R> struct Cells : CellLists<R> {
    using CellLists<R>::mesh, CellLists<R>::n, CellLists<R>::stride, CellLists<R>::m, CellLists<R>::start;
    using CellLists<R>::order, CellLists<R>::axes, CellLists<R>::charges;

    explicit Cells(const CellLists<R> &lists) : CellLists<R>(lists) {}

    // Fills the arrays. Points of a cell stay in their order.
    void sort(const R *Y, const double *charge, int threads) const {
        const std::int64_t count = mesh.nodes();
        Buffer<std::int64_t> key(n, UNINITIALIZED), next(count, UNINITIALIZED);
        const auto for_points = [&](const auto &use) {
            parallel_for(n, 2048, threads, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t i = first; i < last; ++i) use(i);
            });
        };
        for_points([&](std::int64_t i) {
            key[i] = 0;
            for (int c = 0; c < D; ++c) key[i] = key[i] * mesh.size[c] + cell(Y[i * D + c], c);
        });
        for (std::int64_t k = 0; k <= count; ++k) start[k] = 0;
        for (std::int64_t i = 0; i < n; ++i) ++start[key[i] + 1];
        for (std::int64_t k = 0; k < count; ++k) start[k + 1] += start[k];
        for (std::int64_t k = 0; k < count; ++k) next[k] = start[k];
        for (std::int64_t i = 0; i < n; ++i) order[next[key[i]]++] = std::int32_t(i);
        for_points([&](std::int64_t s) {
            const std::int64_t i = order[s];
            for (int c = 0; c < D; ++c) axes[c * stride + s] = Y[i * D + c];
            for (int q = 0; q < m; ++q) charges[q * stride + s] = R(charge[i * m + q]);
        });
        for (std::int64_t s = n; s < stride; ++s) {
            for (int c = 0; c < D; ++c) axes[c * stride + s] = R(0);
            for (int q = 0; q < m; ++q) charges[q * stride + s] = R(0);
        }
    }

    EQ_INLINE std::int64_t cell(R y, int c) const {
        const R u = (y - R(mesh.origin[c])) * R(mesh.inverse_h);
        if (!(u < R(mesh.size[c]))) return u > R(0) ? mesh.size[c] - 1 : 0;  // NaN belong to the first cell
        const std::int64_t k = u > R(0) ? static_cast<std::int64_t>(u) : 0;
        return k >= mesh.size[c] ? mesh.size[c] - 1 : k;
    }

    // Calls use(first, last) for each run of points in the cells around y.
    template <class Use> EQ_INLINE void around(const R *y, Use use) const {
        std::int64_t low[3] = {0, 0, 0}, high[3] = {0, 0, 0};  // the axes of the mesh are the last D
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

// Eight sources at a time. The table is 0 beyond the radius, so that pairs need no test.
template <class R> struct Pack {
    typedef R type __attribute__((vector_size(8 * sizeof(R)), aligned(sizeof(R)), may_alias));
};
EQ_INLINE void near_eight(const Table &table, Pack<float>::type d2, Pack<float>::type *value,
                          Pack<float>::type *slope) {
    Vector v = {}, s = {};
    look_up_eight<true>(table, {table, Vector(d2)}, &v, &s);
    *value = v;
    *slope = s;
}
EQ_INLINE void near_eight(const Table &table, Pack<double>::type d2, Pack<double>::type *value,
                          Pack<double>::type *slope) {
    for (int l = 0; l < 8; ++l) {
        double v, s;
        look_up(table, double(d2[l]), &v, &s);
        (*value)[l] = v;
        (*slope)[l] = s;
    }
}

// Adds Σ_{j≠i, r<a} c_j u(d2) and Σ c_j u'(d2)(t_i - y_j) at targets t for a tabulated radial function u, with the
// sources sorted into cells of side a. Each target sums the cells around it in a fixed order. If targets.data is null,
// the targets are the sources.
template <int D, class R>
void near_in(const Cells<D, R> &cells, const Table &table, Points<R> targets, FieldSums out, int threads) {
    using Eight = typename Pack<R>::type;
    const bool same = targets.data == nullptr;
    const std::int64_t n_targets = same ? cells.n : targets.n, stride = cells.stride;
    const int m = cells.m;
    const R *const axes = cells.axes, *const charge = cells.charges;
    const Eight lane = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto add_at = [&](std::int64_t t) {
        const std::int64_t i = same ? cells.order[t] : t, self = same ? t : -1;
        R home[D];
        for (int c = 0; c < D; ++c) home[c] = same ? axes[c * stride + t] : targets.data[t * D + c];
        for (int q = 0; q < m; ++q) {
            Eight phi = {}, force[D] = {};
            cells.around(home, [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t s = first; s < last; s += 8) {
                    Eight diff[D], d2 = {}, value, slope;
                    for (int c = 0; c < D; ++c) {
                        diff[c] = home[c] - *reinterpret_cast<const Eight *>(axes + c * stride + s);
                        d2 += diff[c] * diff[c];
                    }
                    near_eight(table, d2, &value, &slope);
                    Eight weight = *reinterpret_cast<const Eight *>(charge + q * stride + s);
                    weight = ((lane < R(last - s)) & (lane != R(self - s))) ? weight : Eight{};
                    phi += weight * value;
                    for (int c = 0; c < D; ++c) force[c] += weight * slope * diff[c];
                }
            });
            double total = 0;
            for (int l = 0; l < 8; ++l) total += phi[l];
            out.potential[i * m + q] += total;
            for (int c = 0; c < D; ++c) {
                double pull = 0;
                for (int l = 0; l < 8; ++l) pull += force[c][l];
                out.half_gradient[(i * m + q) * D + c] += pull;
            }
        }
    };
    parallel_for(n_targets, 64, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t t = first; t < last; ++t) add_at(t);
    });
}

template <class R> void sort_into_cells(Points<R> Y, Charges charges, const CellLists<R> &lists, int threads) {
    with_mesh(lists.mesh, [&](auto D) { Cells<D, R>(lists).sort(Y.data, charges.data, threads); });
}

template <class R>
void near_at(const CellLists<R> &lists, const Table &table, Points<R> targets, FieldSums out, int threads) {
    with_mesh(lists.mesh, [&](auto D) { near_in<D, R>(Cells<D, R>(lists), table, targets, out, threads); });
}

template <class R> void near(const Mesh &mesh, const Table &table, Points<R> targets, Points<R> Y, Charges charges,
                             FieldSums out, int threads) {
    const std::int64_t stride = Y.n + CELL_PADDING;
    Buffer<std::int64_t> start(mesh.nodes() + 1, UNINITIALIZED);
    Buffer<std::int32_t> order(Y.n, UNINITIALIZED);
    Buffer<R> axes(stride * Y.d, UNINITIALIZED), charge(stride * charges.m, UNINITIALIZED);
    const CellLists<R> lists{mesh, Y.n, stride, charges.m, start.data, order.data, axes.data, charge.data};
    sort_into_cells<R>(Y, charges, lists, threads);
    near_at<R>(lists, table, targets, out, threads);
}

}  // namespace EQ_ISA
}  // namespace eq
