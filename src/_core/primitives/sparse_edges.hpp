// Edges of a sparse graph in float32: the inner loop of a large embedding. In one to four dimensions a vector contains
// one coordinate of 8 points, so everything is computed for 8 edges at a time. wide_edges.hpp handles more dimensions.
#pragma once
#include <type_traits>

#include "primitives/kernels.hpp"
#include "primitives/tiles.hpp"
#include "primitives/wide_edges.hpp"

namespace eq {
namespace EQ_ISA {

// A kernel is evaluated in two steps, `place` and `read`, so that several vectors of edges can be placed before the
// first is read. AHEAD is their number.

// k'/k = -c b / (a + b d2): every kernel that is a power of a + b d2, and the Gaussian as b → 0.
struct Rational {
    float a, b, c;
    static constexpr int AHEAD = 1;
    using Placed = Vector;
    EQ_INLINE Placed place(Vector d2) const { return d2; }
    template <bool> EQ_INLINE void read(Placed d2, Vector *, Vector *slope) const { *slope = -c / (a + b * d2); }
};

// Any radial function and its slope, from a table. Placing 16 vectors before reading overlaps the latency of the loads;
// 16 is chosen.
struct LookUp {
    Table table;
    static constexpr int AHEAD = 16;
    using Placed = Place<Vector, Integers>;
    EQ_INLINE Placed place(Vector d2) const { return Placed(table, d2); }
    template <bool POTENTIAL> EQ_INLINE void read(const Placed &at, Vector *value, Vector *slope) const {
        look_up_eight<POTENTIAL>(table, at, value, slope);
    }
};

// How a target, prepared once, is compared with 8 points, given as rows of W floats: fills `diff` and returns d2. `diff`
// has COMPONENTS vectors, and `finish` turns their sums into the force.
template <int W> struct FlatRows {
    static constexpr int COMPONENTS = W;
    EQ_INLINE const float *prepare(const float *target) const { return target; }
    EQ_INLINE Vector compare(const float *target, const Vector *y, Vector *diff) const {
        Vector d2 = {};
        for (int c = 0; c < W; ++c) {
            diff[c] = target[c] - y[c];
            d2 += diff[c] * diff[c];
        }
        return d2;
    }
    EQ_INLINE void finish(const float *, double *) const {}
};

// Computes all rows in a loop of its own.
struct OnThreads {
    int threads;
    template <class Row> void operator()(std::int64_t n, const Row &row) const {
        parallel_for(n, 256, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t i = first; i < last; ++i) row(i);
        });
    }
};

// Rows of W = 1, 2 or 4 floats; forces have d components. run(n, row) must call row(i) for each of n rows.
template <int W, bool POTENTIAL, class K, class S, class Run>
void sparse_rows(const K &k, const S &space, const Weights &A, const float *targets, const float *Y, int d,
                 EdgeSums out, const Run &run) {
    constexpr int COMPONENTS = S::COMPONENTS;
    const std::int64_t n = A.rows;
    double *const potential = out.potential, *const force = out.force;
    const auto add_row = [&](std::int64_t i) {
        Vector sum[COMPONENTS] = {}, psi = {};
        const auto target = space.prepare(targets + i * W);
        const auto add = [&](const std::int32_t *index, const float *weights, int count) {
            Vector diff[K::AHEAD][COMPONENTS];
            typename K::Placed at[K::AHEAD];
            for (int v = 0; v < count; ++v) {
                Vector y[W];
                columns<W>(Y, index + 8 * v, y);
                at[v] = k.place(space.compare(target, y, diff[v]));
            }
            for (int v = 0; v < count; ++v) {
                const Vector weight = load(weights + 8 * v);
                Vector value = {}, slope = {};
                k.template read<POTENTIAL>(at[v], &value, &slope);
                if constexpr (POTENTIAL) psi += weight * value;
                slope *= weight;
                for (int c = 0; c < COMPONENTS; ++c) sum[c] += slope * diff[v][c];
            }
        };
        std::int64_t e = A.indptr[i];
        const std::int64_t end = A.indptr[i + 1];
        while (e + 8 <= end) {
            const std::int64_t whole = (end - e) / 8, count = whole < K::AHEAD ? whole : K::AHEAD;
            add(A.indices + e, A.f32 + e, int(count));
            e += 8 * count;
        }
        if (e < end) {  // the last vector is padded with its first edge, at weight 0
            std::int32_t index[8];
            float weights[8];
            for (int t = 0; t < 8; ++t) {
                const std::int64_t from = e + t < end ? e + t : e;
                index[t] = A.indices[from];
                weights[t] = e + t < end ? A.f32[from] : 0.0f;
            }
            add(index, weights, 1);
        }
        double sums[COMPONENTS];
        for (int c = 0; c < COMPONENTS; ++c) sums[c] = total(sum[c]);
        space.finish(target, sums);
        for (int c = 0; c < d; ++c) force[i * d + c] = sums[c];
        if constexpr (POTENTIAL) potential[i] = total(psi);
    };
    run(n, add_row);
}

// Points as rows of W floats: copied if they need padding.
struct PaddedPoints {
    int W;
    Buffer<float> copy;
    const float *data;
    PaddedPoints(Points<float> Y, int threads)
        : W(Y.d < 3   ? Y.d
            : Y.d < 5 ? 4
                      : (Y.d + 7) / 8 * 8),
          copy(W == Y.d ? 1 : Y.n * W, UNINITIALIZED), data(Y.data) {
        if (W == Y.d) return;
        parallel_for(Y.n, 4096, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t i = first; i < last; ++i)
                for (int c = 0; c < W; ++c) copy[i * W + c] = c < Y.d ? Y.data[i * Y.d + c] : 0.0f;
        });
        data = copy.data;
    }
};

// Calls run(kernel, with or without potential) for edges with b = -1 and a rational kernel (without the potential) or a
// tabulated one; returns false for any other.
template <class Run> EQ_INLINE bool with_edge_kernel(const Kernel &kernel, bool potential, Run run) {
    const bool gaussian = kernel.family == Kernel::Family::gaussian;
    if (kernel.family == Kernel::Family::tabulated) {
        if (potential) run(LookUp{kernel.table}, std::true_type{});
        else run(LookUp{kernel.table}, std::false_type{});
        return true;
    }
    if (potential || !(gaussian || kernel.family == Kernel::Family::shifted_power)) return false;
    run(gaussian ? Rational{1, 0, 1} : Rational{float(kernel.a), float(kernel.b), float(kernel.c * kernel.b)},
        std::false_type{});
    return true;
}

// Edges with b = -1 of a map in one to three dimensions; returns false for a kernel that is neither rational nor
// tabulated. `run` is that of sparse_rows().
template <class Run>
bool sparse_edges_of_map(const Kernel &kernel, const Weights &A, Points<float> points, EdgeSums out, int threads,
                         const Run &run) {
    return with_edge_kernel(kernel, out.potential != nullptr, [&](auto k, auto with_potential) {
        const PaddedPoints Y(points, threads);
        constexpr bool P = decltype(with_potential)::value;
        if (Y.W == 1) sparse_rows<1, P>(k, FlatRows<1>{}, A, Y.data, Y.data, 1, out, run);
        else if (Y.W == 2) sparse_rows<2, P>(k, FlatRows<2>{}, A, Y.data, Y.data, 2, out, run);
        else sparse_rows<4, P>(k, FlatRows<4>{}, A, Y.data, Y.data, points.d, out, run);
    });
}

// Edges with b = -1 from targets to points; returns false for a kernel that is neither rational nor tabulated.
inline bool sparse_edges(const Kernel &kernel, const Weights &A, Points<float> targets, Points<float> points,
                         EdgeSums out, int threads) {
    const bool same = targets.data == points.data && targets.n == points.n;
    const int d = points.d;
    return with_edge_kernel(kernel, out.potential != nullptr, [&](auto k, auto with_potential) {
        const PaddedPoints Y(points, threads), padded_targets({targets.data, same ? 0 : targets.n, d}, threads);
        const float *T = same ? Y.data : padded_targets.data;
        const RowShape shape{Y.W, d};
        const OnThreads run{threads};
        constexpr bool P = decltype(with_potential)::value;
        if (Y.W == 1) sparse_rows<1, P>(k, FlatRows<1>{}, A, T, Y.data, d, out, run);
        else if (Y.W == 2) sparse_rows<2, P>(k, FlatRows<2>{}, A, T, Y.data, d, out, run);
        else if (Y.W == 4) sparse_rows<4, P>(k, FlatRows<4>{}, A, T, Y.data, d, out, run);
        else if (Y.W == 8) wide_rows<8, P>(k, Stored{}, A, T, Y.data, shape, out, threads);
        else if (Y.W == 16) wide_rows<16, P>(k, Stored{}, A, T, Y.data, shape, out, threads);
        else wide_rows<0, P>(k, Stored{}, A, T, Y.data, shape, out, threads);
    });
}

inline bool edges_to(const Kernel &kernel, const Weights &A, Points<float> targets, Points<float> Y, double *force,
                     int threads) {
    return sparse_edges(kernel, A, targets, Y, {nullptr, force}, threads);
}

}  // namespace EQ_ISA
}  // namespace eq
