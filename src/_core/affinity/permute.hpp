// The rows and columns of a CSR matrix in another order, and its product with a vector.
#pragma once
#include "threads/parallel.hpp"
#include "types.hpp"

namespace eq {

// Where permute() and symmetrize() write a CSR matrix.
template <class R> struct CsrOut {
    std::int64_t *indptr;
    std::int32_t *indices;
    R *values;
};

// B[i, position[j]] = A[order[i], j], where position is the inverse of order. The entries of a row keep their order.
template <class R> void permute(const Csr &A, const R *values, const std::int64_t *order, const std::int32_t *position,
                                CsrOut<R> B, int threads) {
    B.indptr[0] = 0;
    for (std::int64_t i = 0; i < A.rows; ++i) B.indptr[i + 1] = B.indptr[i] + A.length(order[i]);
    parallel_for(A.rows, 512, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
            std::int64_t at = B.indptr[i];
            for (std::int64_t t = A.indptr[order[i]]; t < A.indptr[order[i] + 1]; ++t, ++at) {
                B.indices[at] = position[A.indices[t]];
                B.values[at] = values[t];
            }
        }
    });
}

// out = A x, each row summed in the order of its entries.
template <class R> void times(const Csr &A, const R *values, const R *x, R *out, int threads) {
    parallel_for(A.rows, 1024, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
            R sum = 0;
            for (std::int64_t t = A.indptr[i]; t < A.indptr[i + 1]; ++t) sum += values[t] * x[A.indices[t]];
            out[i] = sum;
        }
    });
}

}  // namespace eq
