// The rows and columns of a CSR matrix in another order.
#pragma once
#include <cstdint>

namespace eq {

// B[i, place[j]] = A[order[i], j]; the entries of a row keep their order. B has A's number of entries.
template <class R>
void permute(const std::int64_t *indptr, const std::int32_t *indices, const R *values, std::int64_t n,
             const std::int64_t *order, const std::int32_t *place, std::int64_t *out_indptr, std::int32_t *out_indices,
             R *out_values) {
    out_indptr[0] = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t at = out_indptr[i];
        for (std::int64_t t = indptr[order[i]]; t < indptr[order[i] + 1]; ++t, ++at) {
            out_indices[at] = place[indices[t]];
            out_values[at] = values[t];
        }
        out_indptr[i + 1] = at;
    }
}

}  // namespace eq
