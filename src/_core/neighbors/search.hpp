// The entry points of groups.cpp, one of each per instruction set.
#pragma once
#include "types.hpp"

namespace eq {
namespace EQ_ISA {

void pack_panels(Points<float> X, const std::int32_t *ids, std::int64_t panels, float *data, float *norms, int threads);
void nearest_in_groups(const Panels &points, const GroupSearch &search, std::int32_t *out, int threads);

}  // namespace EQ_ISA
}  // namespace eq
