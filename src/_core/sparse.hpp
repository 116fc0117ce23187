// Edges over a sparse graph in float32: the inner loop of a large embedding. In one to four dimensions a vector holds one
// coordinate of 8 points, so everything is computed once for 8 edges. More dimensions are in rows.hpp.
#pragma once
#include <type_traits>

#include "kernels.hpp"
#include "rows.hpp"
#include "tiles.hpp"

namespace eq {
namespace EQ_ISA {

// k'/k = -c b / (a + b d2): every kernel that is a power of a + b d2, and the Gaussian as b → 0.
struct Rational {
    float a, b, c;
    template <bool> EQ_INLINE void read(Vector d2, Vector *, Vector *slope) const { *slope = -c / (a + b * d2); }
};

// Any radial function and its slope from their table.
struct LookUp {
    Table table;
    template <bool POTENTIAL> EQ_INLINE void read(Vector d2, Vector *value, Vector *slope) const {
        look_up_eight<POTENTIAL>(table, d2, value, slope);
    }
};

// Rows of W = 1, 2 or 4 floats, of which the first d count.
template <int W, bool POTENTIAL, class K>
void sparse_rows(const K &k, const Weights &A, const float *targets, std::int64_t n, const float *Y, int d,
                 double *potential, double *force, int threads) {
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (std::int64_t i = 0; i < n; ++i) {
        Vector sum[W] = {}, psi = {};
        const auto add = [&](const std::int32_t *j, Vector weight) {
            Vector diff[W], d2 = {}, value = {}, slope = {};
            columns<W>(Y, j, diff);
            for (int c = 0; c < W; ++c) {
                diff[c] = targets[i * W + c] - diff[c];
                d2 += diff[c] * diff[c];
            }
            k.template read<POTENTIAL>(d2, &value, &slope);
            if constexpr (POTENTIAL) psi += weight * value;
            slope *= weight;
            for (int c = 0; c < W; ++c) sum[c] += slope * diff[c];
        };
        std::int64_t e = A.indptr[i];
        const std::int64_t end = A.indptr[i + 1];
        for (; e + 8 <= end; e += 8) add(A.indices + e, load(A.f32 + e));
        if (e < end) {
            std::int32_t j[8];
            Vector weight = {};
            for (int t = 0; t < 8; ++t) j[t] = A.indices[e + t < end ? e + t : e];
            for (int t = 0; e + t < end; ++t) weight[t] = A.f32[e + t];
            add(j, weight);
        }
        for (int c = 0; c < d; ++c) force[i * d + c] = total(sum[c]);
        if constexpr (POTENTIAL) potential[i] = total(psi);
    }
}

// Points of d coordinates as rows of W.
struct PaddedPoints {
    int W;
    Buffer<float> copy;
    const float *data;
    PaddedPoints(const float *Y, std::int64_t n, int d)
        : W(d < 3 ? d : d < 5 ? 4 : (d + 7) / 8 * 8), copy(W == d ? 1 : n * W), data(Y) {
        if (W == d) return;
        for (std::int64_t i = 0; i < n; ++i)
            for (int c = 0; c < d; ++c) copy[i * W + c] = Y[i * d + c];
        data = copy.data;
    }
};

// The edges with b = -1 from targets to points, for a rational kernel (without potential) or a tabulated one; false if it
// is neither.
inline bool sparse_edges(const Kernel &kernel, const Weights &A, const float *target_rows, std::int64_t n_targets,
                         const float *Y_rows, std::int64_t n, int d, double *potential, double *force, int threads) {
    const bool gaussian = kernel.family == Kernel::Family::gaussian;
    const bool tabulated = kernel.family == Kernel::Family::tabulated;
    const bool rational = (gaussian || kernel.family == Kernel::Family::shifted_power) && potential == nullptr;
    if (!(tabulated || rational)) return false;
    const PaddedPoints Y(Y_rows, n, d), targets(target_rows, target_rows == Y_rows ? 0 : n_targets, d);
    const float *T = target_rows == Y_rows ? Y.data : targets.data;
    const auto run = [&](auto k, auto with_potential) {
        constexpr bool P = decltype(with_potential)::value;
        if (Y.W == 1) sparse_rows<1, P>(k, A, T, n_targets, Y.data, d, potential, force, threads);
        else if (Y.W == 2) sparse_rows<2, P>(k, A, T, n_targets, Y.data, d, potential, force, threads);
        else if (Y.W == 4) sparse_rows<4, P>(k, A, T, n_targets, Y.data, d, potential, force, threads);
        else if (Y.W == 8) wide_rows<8, P>(k, Stored{}, A, T, n_targets, Y.data, Y.W, d, potential, force, threads);
        else if (Y.W == 16) wide_rows<16, P>(k, Stored{}, A, T, n_targets, Y.data, Y.W, d, potential, force, threads);
        else wide_rows<0, P>(k, Stored{}, A, T, n_targets, Y.data, Y.W, d, potential, force, threads);
    };
    if (rational)
        run(gaussian ? Rational{1, 0, 1} : Rational{float(kernel.a), float(kernel.b), float(kernel.c * kernel.b)},
            std::false_type{});
    else if (potential == nullptr)
        run(LookUp{kernel.table}, std::false_type{});
    else
        run(LookUp{kernel.table}, std::true_type{});
    return true;
}

inline bool edges_to(const Kernel &kernel, const Weights &A, const float *targets, std::int64_t n_targets, const float *Y,
                     std::int64_t n, int d, double *force, int threads) {
    return sparse_edges(kernel, A, targets, n_targets, Y, n, d, nullptr, force, threads);
}

}  // namespace EQ_ISA
}  // namespace eq
