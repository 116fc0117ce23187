// The entry points of the numerical code: the two primitives of docs/math.md (edges and field) by direct summation, on
// a mesh and from samples; the perplexity search; optimiser steps; stress. This is their only list: ops.cpp fills it in
// by name, once per instruction set, and the bindings call it.
// Each output row is summed by one thread in a fixed order, so results do not depend on the number of threads.
#pragma once
#include <cstdint>
#include <type_traits>

#include "types.hpp"

namespace eq {

// Entry points that exist for R = float and R = double.
template <class R> struct Ops {
    // Ψ_i = Σ_j A_ij ψ_b(d2_ij) and E_i = Σ_j A_ij k^b k' (y_i - y_j), where ψ_b' = k^b k' (primitives/exact.hpp).
    void (*edges)(const Kernel &, double b, const Weights &A, Points<R> Y, EdgeSums, int threads);
    // Φ_i = Σ_{j≠i} c_j k(d2_ij) and half its gradient Σ_j c_j k'(d2_ij)(y_i - y_j).
    void (*field)(const Kernel &, Charges, Points<R> Y, FieldSums, int threads);
    // The field of all points Y at the targets.
    void (*field_at)(const Kernel &, Charges, Points<R> targets, Points<R> Y, FieldSums, int threads);
    // Edges and field in a curved space, of all points Y at the targets; without targets.data, at the points themselves.
    void (*curved_edges)(const Space &, const Kernel &, double b, const Weights &A, Points<R> targets, Points<R> Y,
                         EdgeSums, int threads);
    void (*curved_field)(const Space &, const Kernel &, Charges, Points<R> targets, Points<R> Y, FieldSums,
                         int threads);
    // Move points of the hyperbolic plane and their velocities, in place: along geodesics, and by an isometry.
    void (*hyperbolic_move)(double radius, Points<R> step, R *Y, R *velocity, int threads);
    void (*hyperbolic_translate)(double radius, double c0, double c1, std::int64_t n, R *Y, R *velocity, int threads);
    // Write forces (n, 2) in normal coordinates as vectors in the orthonormal frame.
    void (*hyperbolic_tangent)(double radius, Points<R> U, const double *F, double *out, int threads);
    // Positions on a polar mesh, and gradients (n, m, 2) per node in normal coordinates, in place.
    void (*polar_nodes)(const PolarMesh &, Points<R> Y, R *out, int threads);
    void (*polar_gradient)(const PolarMesh &, Points<R> Y, int m, double *gradient, int threads);
    // The field of the points at these offsets only. The pairs of a graph, unless its indptr is null, have weight 1.
    void (*field_offsets)(const Kernel &, Charges, Points<R> Y, const Offsets &, const Csr &graph, FieldSums,
                          int threads);
    // Spread charges (n, m) to the mesh (m, nodes).
    void (*spread)(const Mesh &, Points<R> Y, Charges, R *grid, int threads);
    // The same as integers, in units of 1/unit.
    void (*spread_integers)(const Mesh &, Points<R> Y, Charges, double unit, std::int64_t *grid, int threads);
    // Convolve a grid (m, nodes) with a kernel in place; primitives/fourier.hpp gives the order of its frequencies.
    void (*convolve)(const Mesh &, const R *frequencies, int m, R *grid, int threads);
    // Interpolate a potential on the mesh (m, nodes), and half its gradient, at the points.
    void (*gather)(const Mesh &, Points<R> Y, const R *grid, int m, FieldSums, int threads);
    // Add the pairs closer than one cell. If targets.data is null, the targets are the sources, each without itself.
    void (*near)(const Mesh &cells, const Table &, Points<R> targets, Points<R> Y, Charges, FieldSums, int threads);
    // The same for many sets of targets: sort the sources once, and add their pairs at the targets.
    void (*sort_into_cells)(Points<R> Y, Charges, const CellLists<R> &, int threads);
    void (*near_at)(const CellLists<R> &, const Table &, Points<R> targets, FieldSums, int threads);
    // Rows p_{j|i}, averaged over the perplexities. `saturated` marks rows that have more exact ties at the smallest
    // distance than the perplexity: they become uniform over the ties, the limit of small bandwidths.
    void (*conditional)(const Distances &, Perplexities, R *P, std::uint8_t *saturated, int threads);
    // Weights exp(-max(0, r - ρ_i) / σ_i) with sum `target` in every row of a CSR graph of squared distances; σ_i is at
    // least `floor` times the mean distance of the row.
    void (*memberships)(const Csr &, const double *D2, double target, double floor, R *W, int threads);
    // Update velocity and gain (n, d) for one step down the gradient (n, d).
    void (*momentum_step)(const Step &, const double *gradient, std::int64_t n, int d, R *velocity, R *gain);
    // Take steps on a mesh of precision R, and return their number.
    std::int64_t (*mesh_steps)(const MeshSteps &, const MeshKernel<R> &, const MovingMap &, int threads);
    // Σ w (d - δ)² over all pairs, or the sum of another misfit, and half its gradient (n, d); see stress.hpp.
    double (*stress_pairs)(const Misfit &, const Targets &, Points<R> Y, double *half_gradient, int threads);
    // The same between Y (n, d) and T (m, d), with δ (n, m), a weight per point of T, and half gradients of both.
    double (*stress_between)(const Misfit &, const float *delta, const float *weights, Points<R> Y, Points<R> T,
                             double *half_gradient, double *half_gradient_T, int threads);
    // The stress (n) of each point's pairs, listed in a symmetric CSR matrix, and half the gradient of the total.
    void (*stress_listed)(const Misfit &, const Weights &A, const float *delta, Points<R> Y, double *stress,
                          double *half_gradient, int threads);
};

// All entry points of one instruction set.
struct Backend {
    Ops<float> f32;
    Ops<double> f64;

    // Edges with b = -1 from targets to the points they list: E_i = Σ_j A_ij k'/k (t_i - y_j). Returns false for a
    // kernel that is neither rational nor tabulated.
    bool (*edges_to)(const Kernel &, const Weights &A, Points<float> targets, Points<float> Y, double *force,
                     int threads);
    // Add the pairs of the hyperbolic plane closer than rings.reach.
    void (*polar_near)(const Space &, const Table &, double reach, Points<float> targets, Points<float> Y, Charges,
                       FieldSums, int threads);
    // Write the map to `out` after the edges due before `until` have acted; the graph stores the period of each edge.
    void (*negatives_step)(const Negatives &, const Membership &, const Weights &graph, const float *degrees,
                           float *due, Points<float> Y, float *out, int threads);
    void (*sampled_pairs_step)(const Negatives &, const PairTables &, const Weights &graph, const float *degrees,
                               float *due, Points<float> Y, float *out, int threads);
    // Write U minus its mean row to `out`, which may be U.
    void (*center)(Points<float> U, float *out, int threads);
    // Parts of a step that a process makes for its own points; primitives/rank_steps.hpp.
    void (*move_rows)(const Step &, double pull, double push, const double *edges, const double *half_gradient,
                      const MovingMap &, double *sums, int threads);
    void (*shift_rows)(const float *row, std::int64_t n, int d, float *U, float *boxes, int threads);
    void (*block_sums)(const double *x, std::int64_t n, int m, double *sums, int threads);
    double (*sum_all)(const double *x, std::int64_t n, int threads);
    // Euclidean distances (n, k) between points i and neighbors[i, t], for `count` points i in `rows`, or their squares.
    // If points near each other follow each other, their neighbours are in the cache.
    void (*pair_distances)(Points<double> X, const std::int32_t *neighbors, int k, const std::int32_t *rows,
                           std::int64_t count, bool squared, double *distances, int threads);
    // Euclidean distances of the pairs i < j of X, row by row.
    void (*condensed_distances)(Points<float> X, float *out, int threads);
    // Copy the points X[ids] to panels, and compute their squared norms.
    void (*pack_panels)(Points<float> X, const std::int32_t *ids, std::int64_t panels, float *data, float *norms,
                        int threads);
    // The k nearest points of every query among the points of nearby groups: out (queries, k).
    void (*nearest_in_groups)(const Panels &, const GroupSearch &, std::int32_t *out, int threads);
    // The k nearest rows of every query by a distance over columns: out (m, k); and distances in float64 (m, k).
    void (*mixed_nearest)(const MixedSearch &, std::int32_t *out, int threads);
    void (*mixed_distances)(const MixedColumns &, const MixedPairs &, double *out, int threads);
    // How many of n values (a multiple of 8) are below each of m limits (an even number).
    void (*count_below)(const float *values, std::int64_t n, const float *limits, std::int64_t m, std::int32_t *counts);
    // The positions of the values in [low, high) among n values (a multiple of 8); returns their number.
    std::int64_t (*between)(const float *values, std::int64_t n, float low, float high, std::int32_t *out);
    // Minima of values (tiles, 8, 8) along the second axis: out (tiles, 8).
    void (*tile_minima)(const float *values, std::int64_t tiles, float *out);

    template <class R> const Ops<R> &ops() const {
        if constexpr (std::is_same_v<R, float>) return f32;
        else return f64;
    }
};

namespace base {
extern const Backend backend;
}
namespace avx2 {
extern const Backend backend;
}

}  // namespace eq
