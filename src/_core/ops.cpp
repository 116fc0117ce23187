// Compiled once per instruction set, with EQ_ISA naming the namespace; bindings.cpp picks one at import.
#include "primitives/exact.hpp"
#include "primitives/fourier.hpp"
#include "affinity/fuzzy.hpp"
#include "primitives/mesh.hpp"
#include "primitives/negatives.hpp"
#include "affinity/perplexity.hpp"
#include "primitives/sampled.hpp"
#include "neighbors/nearest.hpp"
#include "primitives/momentum.hpp"
#include "stress.hpp"

namespace eq {
namespace EQ_ISA {

extern const Backend backend;
const Backend backend = {edges<float>, edges<double>, field<float>, field<double>,
                         spread<float>, spread<double>, gather<float>, gather<double>, convolve<float>,
                         convolve<double>, near<float>, near<double>,
                         field_offsets<float>, field_offsets<double>, field_at<float>, field_at<double>, edges_to,
                         pair_distances, nearest, count_below, between, least_of_tiles, conditional<float>, conditional<double>, memberships<float>,
                         memberships<double>, negatives_step, momentum_step<float>, momentum_step<double>,
                         condensed_distances, stress_pairs<float>, stress_pairs<double>, stress_between<float>,
                         stress_between<double>, stress_listed<float>, stress_listed<double>};

}  // namespace EQ_ISA
}  // namespace eq
