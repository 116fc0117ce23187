// Distances between rows of mixed columns (Gower 1971): the weighted mean of the differences in the columns where both
// rows have a value. Entry points of mixed.cpp, one of each per instruction set.
#pragma once
#include "types.hpp"

namespace eq {
namespace EQ_ISA {

void mixed_nearest(const MixedSearch &search, std::int32_t *out, int threads);
void mixed_distances(const MixedColumns &columns, const MixedPairs &pairs, double *out, int threads);

}  // namespace EQ_ISA
}  // namespace eq
