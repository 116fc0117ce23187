// The rows and columns of a CSR matrix in another order.
#pragma once
#include "types.hpp"

namespace eq {

// Where permute() and symmetrize() write a CSR matrix.
template <class R> struct CsrOut {
    std::int64_t *indptr;
    std::int32_t *indices;
    R *values;
};

// B[i, position[j]] = A[order[i], j], where position is the inverse of order. The entries of a row keep their order.
template <class R>
void permute(const Csr &A, const R *values, const std::int64_t *order, const std::int32_t *position, CsrOut<R> B) {
    B.indptr[0] = 0;
    for (std::int64_t i = 0; i < A.rows; ++i) {
        std::int64_t at = B.indptr[i];
        for (std::int64_t t = A.indptr[order[i]]; t < A.indptr[order[i] + 1]; ++t, ++at) {
            B.indices[at] = position[A.indices[t]];
            B.values[at] = values[t];
        }
        B.indptr[i + 1] = at;
    }
}

}  // namespace eq
