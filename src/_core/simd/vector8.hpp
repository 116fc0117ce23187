// Vectors of 8 floats: one value for each of 8 edges, or 8 coordinates of a point.
#pragma once
#include "simd/vecmath.hpp"

namespace eq {
namespace EQ_ISA {

typedef float Vector __attribute__((vector_size(32)));
typedef std::int32_t Integers __attribute__((vector_size(32)));

EQ_INLINE Vector load(const float *x) {
    Vector v;
    std::memcpy(&v, x, sizeof v);
    return v;
}

EQ_INLINE Vector floats(Integers x) { return __builtin_convertvector(x, Vector); }

EQ_INLINE double total(Vector x) {
    double sum = 0;
    for (int t = 0; t < 8; ++t) sum += x[t];
    return sum;
}

// Gathers 8 rows of a matrix with W = 1, 2 or 4 columns, and transposes them: column[c] contains column c of the 8
// rows. A row is one load; the shuffles stay within the halves of a vector.
template <int W> EQ_INLINE void columns(const float *rows, const std::int32_t *index, Vector *column) {
    if constexpr (W == 1) {
        for (int t = 0; t < 8; ++t) column[0][t] = rows[index[t]];
    } else if constexpr (W == 2) {
        typedef double Doubles __attribute__((vector_size(32)));  // two floats move as one double
        double row[8];
        for (int t = 0; t < 8; ++t) std::memcpy(&row[t], rows + 2 * std::int64_t(index[t]), 8);
        const Vector a = bits<Vector>(Doubles{row[0], row[1], row[4], row[5]});
        const Vector b = bits<Vector>(Doubles{row[2], row[3], row[6], row[7]});
        column[0] = __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14);
        column[1] = __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
    } else {
        typedef float Quad __attribute__((vector_size(16)));
        Quad row[8];
        Vector pair[4];
        for (int t = 0; t < 8; ++t) std::memcpy(&row[t], rows + 4 * std::int64_t(index[t]), 16);
        for (int t = 0; t < 4; ++t) pair[t] = __builtin_shufflevector(row[t], row[t + 4], 0, 1, 2, 3, 4, 5, 6, 7);
        const Vector low01 = __builtin_shufflevector(pair[0], pair[1], 0, 8, 1, 9, 4, 12, 5, 13);
        const Vector low23 = __builtin_shufflevector(pair[2], pair[3], 0, 8, 1, 9, 4, 12, 5, 13);
        const Vector high01 = __builtin_shufflevector(pair[0], pair[1], 2, 10, 3, 11, 6, 14, 7, 15);
        const Vector high23 = __builtin_shufflevector(pair[2], pair[3], 2, 10, 3, 11, 6, 14, 7, 15);
        column[0] = __builtin_shufflevector(low01, low23, 0, 1, 8, 9, 4, 5, 12, 13);
        column[1] = __builtin_shufflevector(low01, low23, 2, 3, 10, 11, 6, 7, 14, 15);
        column[2] = __builtin_shufflevector(high01, high23, 0, 1, 8, 9, 4, 5, 12, 13);
        column[3] = __builtin_shufflevector(high01, high23, 2, 3, 10, 11, 6, 7, 14, 15);
    }
}

}  // namespace EQ_ISA
}  // namespace eq
