// What the core offers: the two primitives of docs/math.md (edges and field), exactly, on a mesh and from samples, the
// perplexity search, the optimiser's step, and stress.
// Plain arrays in, plain arrays out. Each output row is summed by one thread in a fixed order, so the number of
// threads never changes a byte.
#pragma once
#include <cstdint>

namespace eq {

// A radial function and its slope d/d(d2) in segments, 64 per octave: segment i holds the d2 whose bits, as
// float(d2 · scale) >> 17, are first + i. With f from 0 to 1 inside, of width Δ in d2, it stores v0, s0, s1, s2: the slope
// is s0 + s1 f + s2 f² and the function its integral, v0 + Δ (s0 f + s1 f²/2 + s2 f³/3). What lies before the first
// segment is held at its start, what lies behind the start of the last at that.
struct Table {
    const float *segments = nullptr;  // (size, 4)
    std::int32_t first = 0, size = 0;
    float scale = 1;
};

// A regular grid of d axes: size[c] nodes from origin[c] on, 1 / inverse_h apart.
struct Mesh {
    int d = 0;
    double origin[3] = {0, 0, 0}, inverse_h = 1;
    std::int64_t size[3] = {1, 1, 1};
    std::int64_t nodes() const { return size[0] * size[1] * size[2]; }
};

// A radial kernel k(d2), by family; docs/math.md section 2.
struct Kernel {
    enum class Family {
        gaussian,           // exp(-d2)
        shifted_power,      // (a + b d2)^-c: Student-t, spherical exit; c = 1 is t-SNE's kernel
        clamped_power,      // max(d2, b)^-c: power law, flat inside the cut-off b = r0²
        regularized_power,  // 1 / (a + b d2^c): eq. (13) of Lin et al. 2024, c = β/2
        log_complement,     // log(1 + 1 / (b x^c)), x = a + d2: -log(1 - k) of k = 1 / (1 + b x^c)
        tabulated,          // for edges with b = -1: the table holds ψ_b and k^b k' for the true b;
                            // for sampled fields: k and k'
    };
    Family family = Family::gaussian;
    double a = 0, b = 0, c = 0;
    Table table;
};

// Read-only view of the weights A: dense (n, n), or CSR when indptr is given. Values are float or double.
struct Weights {
    const float *f32 = nullptr;
    const double *f64 = nullptr;
    const std::int64_t *indptr = nullptr;
    const std::int32_t *indices = nullptr;
};

// Squared distances of the input: from points X (n, D), a dense matrix (n, n), or a CSR graph.
struct Distances {
    const double *points = nullptr;
    std::int64_t dimension = 0;
    const double *dense = nullptr;
    const std::int64_t *indptr = nullptr;
    const double *graph = nullptr;
};

// What the distances of a map should be: stored for the pairs i < j, row by row, with a weight each if these are given, or
// those between points X (n, dimension).
struct Targets {
    const float *condensed = nullptr;
    const float *weights = nullptr;
    const float *points = nullptr;
    std::int64_t dimension = 0;
};

// One step of momentum with gains; optimize.py says what the letters mean.
struct Step {
    double rate, momentum, gain_up, gain_down, turned, min_gain, max_step;
};

// One step of descent by sampled edges; sampling.py says what the letters mean.
struct Negatives {
    double a, b, epsilon, clip, rate, exaggeration, until;
    int count;  // negatives per edge
    std::uint64_t seed;
    std::int64_t step;
};

// One set of entry points per instruction set.
struct Backend {
    // Ψ_i = Σ_j A_ij ψ_b(d2_ij) and E_i = Σ_j A_ij k^b k' (y_i - y_j), where ψ_b' = k^b k' (see exact.hpp).
    // `potential` may be null.
    void (*edges_f32)(const Kernel &, double b, const Weights &, const float *Y, std::int64_t n, int d, double *potential,
                      double *force, int threads);
    void (*edges_f64)(const Kernel &, double b, const Weights &, const double *Y, std::int64_t n, int d,
                      double *potential, double *force, int threads);
    // Φ_i = Σ_{j≠i} c_j k(d2_ij), (n, m), and half its gradient Σ_j c_j k'(d2_ij)(y_i - y_j), (n, m, d).
    void (*field_f32)(const Kernel &, const double *charges, int m, const float *Y, std::int64_t n, int d,
                      double *potential, double *half_gradient, int threads);
    void (*field_f64)(const Kernel &, const double *charges, int m, const double *Y, std::int64_t n, int d,
                      double *potential, double *half_gradient, int threads);
    // Charges (n, m) to the mesh (m, nodes), and a potential on it (m, nodes) back to the points, with half its gradient.
    void (*spread_f32)(const Mesh &, const float *Y, std::int64_t n, const double *charges, int m, float *grid, int threads);
    void (*spread_f64)(const Mesh &, const double *Y, std::int64_t n, const double *charges, int m, double *grid,
                       int threads);
    void (*gather_f32)(const Mesh &, const float *Y, std::int64_t n, const float *grid, int m, double *potential,
                       double *half_gradient, int threads);
    void (*gather_f64)(const Mesh &, const double *Y, std::int64_t n, const double *grid, int m, double *potential,
                       double *half_gradient, int threads);
    // A grid (m, nodes) convolved with a kernel, in place; fourier.hpp says how its frequencies lie.
    void (*convolve_f32)(const Mesh &, const float *frequencies, int m, float *grid, int threads);
    void (*convolve_f64)(const Mesh &, const double *frequencies, int m, double *grid, int threads);
    // Adds the sources Y nearer to each target than one cell of `cells`; null targets are the sources, each without itself.
    void (*near_f32)(const Mesh &cells, const Table &, const float *targets, std::int64_t n_targets, const float *Y,
                     std::int64_t n, int d, const double *charges, int m, double *potential, double *half_gradient,
                     int threads);
    void (*near_f64)(const Mesh &cells, const Table &, const double *targets, std::int64_t n_targets, const double *Y,
                     std::int64_t n, int d, const double *charges, int m, double *potential, double *half_gradient,
                     int threads);
    // The field of the points at these offsets alone, each with its weight: Σ_o w_o c_j k(d2_ij), j = i + o modulo n, with
    // offsets from 1 to n - 1. The pairs of a graph, if its indptr is given, have weight 1 instead.
    void (*field_offsets_f32)(const Kernel &, const double *charges, int m, const float *Y, std::int64_t n, int d,
                              const std::int64_t *offsets, const double *weights, std::int64_t count,
                              const Weights &graph, double *potential, double *half_gradient, int threads);
    void (*field_offsets_f64)(const Kernel &, const double *charges, int m, const double *Y, std::int64_t n, int d,
                              const std::int64_t *offsets, const double *weights, std::int64_t count,
                              const Weights &graph, double *potential, double *half_gradient, int threads);
    // The field of all points Y at targets (n_targets, d).
    void (*field_at_f32)(const Kernel &, const double *charges, int m, const float *targets, std::int64_t n_targets,
                         const float *Y, std::int64_t n, int d, double *potential, double *half_gradient, int threads);
    void (*field_at_f64)(const Kernel &, const double *charges, int m, const double *targets, std::int64_t n_targets,
                         const double *Y, std::int64_t n, int d, double *potential, double *half_gradient, int threads);
    // Edges with b = -1 from targets (n_targets, d) to the points Y they list: E_i = Σ_j A_ij k'/k (t_i - y_j), float32.
    bool (*edges_to)(const Kernel &, const Weights &, const float *targets, std::int64_t n_targets, const float *Y,
                     std::int64_t n, int d, double *force, int threads);
    // Squared Euclidean distances of listed pairs: d2[i, t] between points i and neighbours[i, t].
    void (*pair_distances)(const double *X, std::int64_t n, std::int64_t dimension, const std::int32_t *neighbors, int k,
                           double *d2, int threads);
    // For each row of dots (rows, columns): the columns of the k smallest norm - 2 dot, from the smallest on (select.hpp).
    void (*nearest)(const float *dots, const float *norms, std::int64_t rows, std::int64_t columns, std::int64_t k,
                    std::int32_t *out);
    // How many of n values, a multiple of 8, lie below each of m limits, an even number (select.hpp).
    void (*count_below)(const float *values, std::int64_t n, const float *limits, std::int64_t m, std::int32_t *counts);
    // The places of those of n values, a multiple of 8, from `low` on and below `high`; returns how many.
    std::int64_t (*between)(const float *values, std::int64_t n, float low, float high, std::int32_t *out);
    // Of values (tiles, 8, 8) the least along the second axis: out (tiles, 8).
    void (*least_of_tiles)(const float *values, std::int64_t tiles, float *out);
    // Rows p_{j|i} averaged over the given perplexities. `saturated` marks rows that have more exact ties at the smallest
    // distance than the perplexity asks for: their limit, even weights over the ties, is taken.
    void (*conditional_f32)(const Distances &, std::int64_t n, const double *perplexities, int scales, float *P,
                            std::uint8_t *saturated, int threads);
    void (*conditional_f64)(const Distances &, std::int64_t n, const double *perplexities, int scales, double *P,
                            std::uint8_t *saturated, int threads);
    // Weights exp(-max(0, r - ρ_i) / σ_i) of total `target` in every row of a CSR graph of squared distances; σ_i is at least
    // `floor` times the mean distance of the row.
    void (*memberships_f32)(const std::int64_t *indptr, const double *D2, std::int64_t n, double target, double floor,
                            float *W, int threads);
    void (*memberships_f64)(const std::int64_t *indptr, const double *D2, std::int64_t n, double target, double floor,
                            double *W, int threads);
    // The map `out` after the edges due before `until` have pulled. The graph holds the time from one pull to the next.
    void (*negatives_step)(const Negatives &, const Weights &graph, const float *degrees, float *due, const float *Y,
                           std::int64_t n, int d, float *out, int threads);
    // velocity and gain (n, d) after one step down the gradient (n, d).
    void (*momentum_step_f32)(const Step &, const double *gradient, std::int64_t n, int d, float *velocity, float *gain);
    void (*momentum_step_f64)(const Step &, const double *gradient, std::int64_t n, int d, double *velocity,
                              double *gain);
    // Euclidean distances of the pairs i < j of X (n, D), row by row.
    void (*condensed_distances)(const float *X, std::int64_t n, std::int64_t D, float *out, int threads);
    // Σ w (d - δ)² over pairs, returned, and half its gradient: all pairs; between Y (n, d) and T (m, d) with a weight per
    // column; and the pairs stored in CSR, in both directions, for each point (stress.hpp).
    double (*stress_pairs_f32)(const Targets &, const float *Y, std::int64_t n, int d, double *half_gradient, int threads);
    double (*stress_pairs_f64)(const Targets &, const double *Y, std::int64_t n, int d, double *half_gradient,
                               int threads);
    double (*stress_between_f32)(const float *delta, const float *weights, const float *Y, std::int64_t n, const float *T,
                                 std::int64_t m, int d, double *half_gradient, double *half_gradient_T, int threads);
    double (*stress_between_f64)(const float *delta, const float *weights, const double *Y, std::int64_t n, const double *T,
                                 std::int64_t m, int d, double *half_gradient, double *half_gradient_T, int threads);
    void (*stress_listed_f32)(const Weights &, const float *delta, const float *Y, std::int64_t n, int d, double *stress,
                              double *half_gradient, int threads);
    void (*stress_listed_f64)(const Weights &, const float *delta, const double *Y, std::int64_t n, int d, double *stress,
                              double *half_gradient, int threads);
};

namespace base {
extern const Backend backend;
}
namespace avx2 {
extern const Backend backend;
}

}  // namespace eq
