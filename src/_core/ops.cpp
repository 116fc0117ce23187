// Compiled once per instruction set, with EQ_ISA naming its namespace; bind/module.cpp chooses one at import.
#include "ops.hpp"

#include "affinity/fuzzy.hpp"
#include "affinity/perplexity.hpp"
#include "neighbors/limits.hpp"
#include "neighbors/mixed.hpp"
#include "neighbors/search.hpp"
#include "primitives/exact.hpp"
#include "primitives/fourier.hpp"
#include "primitives/hyperbolic_steps.hpp"
#include "primitives/mesh.hpp"
#include "primitives/mesh_steps.hpp"
#include "primitives/momentum.hpp"
#include "primitives/near_field.hpp"
#include "primitives/negatives.hpp"
#include "primitives/polar_mesh.hpp"
#include "primitives/polar_near.hpp"
#include "primitives/rank_steps.hpp"
#include "primitives/sampled.hpp"
#include "stress.hpp"

namespace eq {
namespace EQ_ISA {

template <class R> constexpr Ops<R> make_ops() {
    Ops<R> ops{};
    ops.edges = edges<R>;
    ops.field = field<R>;
    ops.field_at = field_at<R>;
    ops.curved_edges = curved_edges<R>;
    ops.curved_field = curved_field<R>;
    ops.hyperbolic_move = hyperbolic_move<R>;
    ops.hyperbolic_translate = hyperbolic_translate<R>;
    ops.hyperbolic_tangent = hyperbolic_tangent<R>;
    ops.polar_nodes = polar_nodes<R>;
    ops.polar_gradient = polar_gradient<R>;
    ops.field_offsets = field_offsets<R>;
    ops.spread = spread<R>;
    ops.spread_integers = spread_integers<R>;
    ops.convolve = convolve<R>;
    ops.gather = gather<R>;
    ops.near = near<R>;
    ops.sort_into_cells = sort_into_cells<R>;
    ops.near_at = near_at<R>;
    ops.conditional = conditional<R>;
    ops.memberships = memberships<R>;
    ops.momentum_step = momentum_step<R>;
    ops.mesh_steps = mesh_steps<R>;
    ops.stress_pairs = stress_pairs<R>;
    ops.stress_between = stress_between<R>;
    ops.stress_listed = stress_listed<R>;
    return ops;
}

constexpr Backend make_backend() {
    Backend backend{};
    backend.f32 = make_ops<float>();
    backend.f64 = make_ops<double>();
    backend.edges_to = edges_to;
    backend.polar_near = polar_near;
    backend.negatives_step = negatives_step;
    backend.sampled_pairs_step = sampled_pairs_step;
    backend.center = center;
    backend.move_rows = move_rows;
    backend.shift_rows = shift_rows;
    backend.block_sums = block_sums;
    backend.sum_all = sum_all;
    backend.pair_distances = pair_distances;
    backend.condensed_distances = condensed_distances;
    backend.pack_panels = pack_panels;
    backend.nearest_in_groups = nearest_in_groups;
    backend.mixed_nearest = mixed_nearest;
    backend.mixed_distances = mixed_distances;
    backend.count_below = count_below;
    backend.between = between;
    backend.tile_minima = tile_minima;
    return backend;
}

// A constant expression: nothing compiled for this instruction set runs at import, where the processor may lack it.
extern const Backend backend;
constexpr Backend filled = make_backend();
const Backend backend = filled;

}  // namespace EQ_ISA
}  // namespace eq
