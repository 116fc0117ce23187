// Edges over a sparse graph in float32: the inner loop of a large embedding. In one to four dimensions a vector of 8
// floats holds 8/W whole points of W = 1, 2 or 4 coordinates, so a point is fetched by one load, and d2 appears in every
// lane of its point after log2(W) swaps. More dimensions are in rows.hpp.
#pragma once
#include <type_traits>

#include "kernels.hpp"
#include "rows.hpp"
#include "tiles.hpp"

namespace eq {
namespace EQ_ISA {

typedef float Vector __attribute__((vector_size(32)));
typedef float Quad __attribute__((vector_size(16)));
typedef std::int32_t Integers __attribute__((vector_size(32)));

EQ_INLINE Vector spread_out(float x) { return Vector{x, x, x, x, x, x, x, x}; }

template <int W> struct Packed;

template <> struct Packed<1> {
    static EQ_INLINE Vector points(const float *Y, const std::int32_t *j) {
        return Vector{Y[j[0]], Y[j[1]], Y[j[2]], Y[j[3]], Y[j[4]], Y[j[5]], Y[j[6]], Y[j[7]]};
    }
    static EQ_INLINE Vector weights(const float *a) { return Vector{a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]}; }
    static EQ_INLINE Vector total(Vector x) { return x; }
};

template <> struct Packed<2> {
    static EQ_INLINE Vector points(const float *Y, const std::int32_t *j) {
        typedef double Doubles __attribute__((vector_size(32)));  // two floats travel as one double
        double p[4];
        for (int t = 0; t < 4; ++t) std::memcpy(&p[t], Y + 2 * std::int64_t(j[t]), 8);
        return bits<Vector>(Doubles{p[0], p[1], p[2], p[3]});
    }
    static EQ_INLINE Vector weights(const float *a) { return Vector{a[0], a[0], a[1], a[1], a[2], a[2], a[3], a[3]}; }
    static EQ_INLINE Vector total(Vector x) { return x + __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6); }
};

template <> struct Packed<4> {
    static EQ_INLINE Vector points(const float *Y, const std::int32_t *j) {
        Quad p, q;
        std::memcpy(&p, Y + 4 * std::int64_t(j[0]), 16);
        std::memcpy(&q, Y + 4 * std::int64_t(j[1]), 16);
        return __builtin_shufflevector(p, q, 0, 1, 2, 3, 4, 5, 6, 7);
    }
    static EQ_INLINE Vector weights(const float *a) { return Vector{a[0], a[0], a[0], a[0], a[1], a[1], a[1], a[1]}; }
    static EQ_INLINE Vector total(Vector x) {
        x = x + __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
        return x + __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    }
};

// k'/k = -c b / (a + b d2): every kernel that is a power of a + b d2, and the Gaussian as b → 0.
struct Rational {
    float a, b, c;
    template <int, bool> EQ_INLINE void read(Vector d2, Vector *, Vector *slope) const {
        *slope = spread_out(-c) / (spread_out(a) + spread_out(b) * d2);
    }
};

// Any radial function and its slope from their table: what a segment holds is one 16-byte load per edge.
struct LookUp {
    Table table;

    // Both functions at each edge, in every lane of the edge.
    template <int W, bool POTENTIAL> EQ_INLINE void read(Vector d2, Vector *value, Vector *slope) const {
        const Integers b = bits<Integers>(d2 * spread_out(table.scale));
        const Integers last = Integers{} + (table.size - 1);
        Integers i = (b >> 14) - (Integers{} + table.first);
        Vector f = __builtin_convertvector(b & 0x3FFF, Vector) * spread_out(1.0f / 16384);
        f = i < 0 ? spread_out(0) : i > last ? spread_out(1) : f;
        i = i < 0 ? Integers{} : i > last ? last : i;
        if constexpr (W == 2) {  // (low, high) fill the two lanes of an edge: weigh them by (1 - f, f) and add
            Quad q[4];
            for (int t = 0; t < 4; ++t) std::memcpy(&q[t], table.segments + 4 * std::int64_t(i[2 * t]), 16);
            const Vector left = __builtin_shufflevector(q[0], q[2], 0, 1, 2, 3, 4, 5, 6, 7);
            const Vector right = __builtin_shufflevector(q[1], q[3], 0, 1, 2, 3, 4, 5, 6, 7);
            const Integers odd = {0, -1, 0, -1, 0, -1, 0, -1};
            const Vector share = odd ? f : spread_out(1) - f;
            if constexpr (POTENTIAL)
                *value = Packed<2>::total(__builtin_shufflevector(left, right, 0, 1, 8, 9, 4, 5, 12, 13) * share);
            *slope = Packed<2>::total(__builtin_shufflevector(left, right, 2, 3, 10, 11, 6, 7, 14, 15) * share);
        } else if constexpr (W == 1) {  // eight segments of four numbers, transposed
            Quad q[8];
            for (int t = 0; t < 8; ++t) std::memcpy(&q[t], table.segments + 4 * std::int64_t(i[t]), 16);
            Vector a[4];
            for (int t = 0; t < 4; ++t) a[t] = __builtin_shufflevector(q[t], q[t + 4], 0, 1, 2, 3, 4, 5, 6, 7);
            const Vector low01 = __builtin_shufflevector(a[0], a[1], 0, 8, 1, 9, 4, 12, 5, 13);
            const Vector low23 = __builtin_shufflevector(a[2], a[3], 0, 8, 1, 9, 4, 12, 5, 13);
            const Vector high01 = __builtin_shufflevector(a[0], a[1], 2, 10, 3, 11, 6, 14, 7, 15);
            const Vector high23 = __builtin_shufflevector(a[2], a[3], 2, 10, 3, 11, 6, 14, 7, 15);
            const auto mix = [&](Vector x, Vector y) {
                const Vector left = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
                return left + (__builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15) - left) * f;
            };
            if constexpr (POTENTIAL) *value = mix(low01, low23);
            *slope = mix(high01, high23);
        } else {
            for (int t = 0; t < 8; t += W) {
                const float *s = table.segments + 4 * std::int64_t(i[t]);
                for (int l = 0; l < W; ++l) {
                    if constexpr (POTENTIAL) (*value)[t + l] = s[0] + (s[1] - s[0]) * f[t];
                    (*slope)[t + l] = s[2] + (s[3] - s[2]) * f[t];
                }
            }
        }
    }
};

template <int W, bool POTENTIAL, class K>
void sparse_rows(const K &k, const Weights &A, const float *targets, std::int64_t n, const float *Y, int d,
                 double *potential, double *force, int threads) {
    constexpr int E = 8 / W;  // edges per vector
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (std::int64_t i = 0; i < n; ++i) {
        Vector home;
        for (int t = 0; t < 8; ++t) home[t] = targets[i * W + t % W];
        Vector sum = {}, psi = {};
        const auto add = [&](const std::int32_t *j, const float *a) {
            const Vector diff = home - Packed<W>::points(Y, j), d2 = Packed<W>::total(diff * diff);
            const Vector weight = Packed<W>::weights(a);
            Vector value = {}, slope = {};
            k.template read<W, POTENTIAL>(d2, &value, &slope);
            sum += weight * slope * diff;
            if constexpr (POTENTIAL) psi += weight * value;
        };
        std::int64_t e = A.indptr[i];
        const std::int64_t end = A.indptr[i + 1];
        for (; e + E <= end; e += E) add(A.indices + e, A.f32 + e);
        if (e < end) {
            std::int32_t j[E];
            float a[E];
            for (int t = 0; t < E; ++t) {
                j[t] = e + t < end ? A.indices[e + t] : A.indices[e];
                a[t] = e + t < end ? A.f32[e + t] : 0.0f;
            }
            add(j, a);
        }
        for (int c = 0; c < d; ++c) {
            double total = 0;
            for (int t = c; t < 8; t += W) total += sum[t];
            force[i * d + c] = total;
        }
        if constexpr (POTENTIAL) {
            double total = 0;
            for (int t = 0; t < 8; t += W) total += psi[t];
            potential[i] = total;
        }
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
