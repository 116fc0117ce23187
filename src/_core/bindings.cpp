// Thin bindings: types and ranks are checked by nanobind, sizes here, meaning in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "core.hpp"
#include "permute.hpp"
#include "select.hpp"
#include "symmetrize.hpp"

namespace nb = nanobind;
using namespace nb::literals;

void bind_paths(nb::module_ &m);

namespace {

template <class T, class... Config> using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu, Config...>;
template <class T, class... Config> using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu, Config...>;

#ifdef EQ_HAVE_AVX2
bool use_avx2 = __builtin_cpu_supports("avx2");
#else
constexpr bool use_avx2 = false;
#endif

const eq::Backend &backend() {
#ifdef EQ_HAVE_AVX2
    if (use_avx2) return eq::avx2::backend;
#endif
    return eq::base::backend;
}

const char *instruction_set() { return use_avx2 ? "avx2" : "base"; }

void use_base_instruction_set(bool base) {
#ifdef EQ_HAVE_AVX2
    use_avx2 = !base && __builtin_cpu_supports("avx2");
#else
    (void)base;
#endif
}

void require(bool holds, const char *what) {
    if (!holds) throw nb::value_error(what);
}

// Row pointers of a CSR pattern rise from 0 to the number of entries. The callers check that indices are below n.
void require_csr(const In<std::int64_t, nb::shape<-1>> &indptr, std::size_t entries, std::size_t rows) {
    require(indptr.shape(0) == rows + 1, "indptr must have one entry more than there are rows");
    const std::int64_t *p = indptr.data();
    require(p[0] == 0 && p[rows] == std::int64_t(entries), "indptr must run from 0 to the number of stored entries");
    for (std::size_t i = 0; i < rows; ++i) require(p[i] <= p[i + 1], "indptr must not fall");
}

void edges(const eq::Kernel &kernel, double b, const eq::Weights &A, const float *Y, std::int64_t n, int d, double *psi,
           double *force, int threads) {
    backend().edges_f32(kernel, b, A, Y, n, d, psi, force, threads);
}
void edges(const eq::Kernel &kernel, double b, const eq::Weights &A, const double *Y, std::int64_t n, int d, double *psi,
           double *force, int threads) {
    backend().edges_f64(kernel, b, A, Y, n, d, psi, force, threads);
}
void field(const eq::Kernel &kernel, const double *charges, int m, const float *Y, std::int64_t n, int d, double *phi,
           double *half_gradient, int threads) {
    backend().field_f32(kernel, charges, m, Y, n, d, phi, half_gradient, threads);
}
void field(const eq::Kernel &kernel, const double *charges, int m, const double *Y, std::int64_t n, int d, double *phi,
           double *half_gradient, int threads) {
    backend().field_f64(kernel, charges, m, Y, n, d, phi, half_gradient, threads);
}
void conditional(const eq::Distances &D, std::int64_t n, const double *perplexities, int scales, float *P,
                 std::uint8_t *saturated, int threads) {
    backend().conditional_f32(D, n, perplexities, scales, P, saturated, threads);
}
void conditional(const eq::Distances &D, std::int64_t n, const double *perplexities, int scales, double *P,
                 std::uint8_t *saturated, int threads) {
    backend().conditional_f64(D, n, perplexities, scales, P, saturated, threads);
}

double stress_pairs(const eq::Targets &targets, const float *Y, std::int64_t n, int d, double *half_gradient, int threads) {
    return backend().stress_pairs_f32(targets, Y, n, d, half_gradient, threads);
}
double stress_pairs(const eq::Targets &targets, const double *Y, std::int64_t n, int d, double *half_gradient, int threads) {
    return backend().stress_pairs_f64(targets, Y, n, d, half_gradient, threads);
}
double stress_between(const float *delta, const float *weights, const float *Y, std::int64_t n, const float *T,
                      std::int64_t m, int d, double *half_gradient, double *half_gradient_T, int threads) {
    return backend().stress_between_f32(delta, weights, Y, n, T, m, d, half_gradient, half_gradient_T, threads);
}
double stress_between(const float *delta, const float *weights, const double *Y, std::int64_t n, const double *T,
                      std::int64_t m, int d, double *half_gradient, double *half_gradient_T, int threads) {
    return backend().stress_between_f64(delta, weights, Y, n, T, m, d, half_gradient, half_gradient_T, threads);
}
void stress_listed(const eq::Weights &A, const float *delta, const float *Y, std::int64_t n, int d, double *stress,
                   double *half_gradient, int threads) {
    backend().stress_listed_f32(A, delta, Y, n, d, stress, half_gradient, threads);
}
void stress_listed(const eq::Weights &A, const float *delta, const double *Y, std::int64_t n, int d, double *stress,
                   double *half_gradient, int threads) {
    backend().stress_listed_f64(A, delta, Y, n, d, stress, half_gradient, threads);
}

eq::Weights weights(const float *values) {
    eq::Weights A;
    A.f32 = values;
    return A;
}
eq::Weights weights(const double *values) {
    eq::Weights A;
    A.f64 = values;
    return A;
}

void require_edge_outputs(std::size_t n, std::size_t d, const Out<double, nb::shape<-1>> &potential,
                          const Out<double, nb::shape<-1, -1>> &force) {
    require(potential.shape(0) == 0 || potential.shape(0) == n, "potential must be empty or (n,)");
    require(force.shape(0) == n && force.shape(1) == d, "force must be (n, d)");
}

template <class R, class T> void bind_edges(nb::module_ &m) {
    m.def("edges_dense",
          [](const eq::Kernel &kernel, double b, In<T, nb::shape<-1, -1>> A, In<R, nb::shape<-1, -1>> Y,
             Out<double, nb::shape<-1>> potential, Out<double, nb::shape<-1, -1>> force, int threads) {
              require(A.shape(0) == Y.shape(0) && A.shape(1) == Y.shape(0), "A must be (n, n) for Y (n, d)");
              require_edge_outputs(Y.shape(0), Y.shape(1), potential, force);
              nb::gil_scoped_release release;
              edges(kernel, b, weights(A.data()), Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1)),
                    potential.shape(0) == 0 ? nullptr : potential.data(), force.data(), threads);
          },
          "kernel"_a, "b"_a, "A"_a.noconvert(), "Y"_a.noconvert(), "potential"_a.noconvert(), "force"_a.noconvert(),
          "threads"_a, "Ψ and E of all pairs, A dense; an empty `potential` leaves Ψ out.");
    m.def("edges_sparse",
          [](const eq::Kernel &kernel, double b, In<std::int64_t, nb::shape<-1>> indptr,
             In<std::int32_t, nb::shape<-1>> indices, In<T, nb::shape<-1>> values, In<R, nb::shape<-1, -1>> Y,
             Out<double, nb::shape<-1>> potential, Out<double, nb::shape<-1, -1>> force, int threads) {
              require(indices.shape(0) == values.shape(0), "indices and values must be of one length");
              require_csr(indptr, values.shape(0), Y.shape(0));
              require_edge_outputs(Y.shape(0), Y.shape(1), potential, force);
              nb::gil_scoped_release release;
              eq::Weights A = weights(values.data());
              A.indptr = indptr.data();
              A.indices = indices.data();
              edges(kernel, b, A, Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1)),
                    potential.shape(0) == 0 ? nullptr : potential.data(), force.data(), threads);
          },
          "kernel"_a, "b"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "Y"_a.noconvert(),
          "potential"_a.noconvert(), "force"_a.noconvert(), "threads"_a,
          "Ψ and E of the stored pairs, A in CSR; an empty `potential` leaves Ψ out.");
}

void require_field_outputs(std::size_t targets, std::size_t m, std::size_t d,
                           const Out<double, nb::shape<-1, -1>> &potential,
                           const Out<double, nb::shape<-1, -1, -1>> &half_gradient) {
    require(potential.shape(0) == targets && potential.shape(1) == m, "potential must be (targets, m)");
    require(half_gradient.shape(0) == targets && half_gradient.shape(1) == m && half_gradient.shape(2) == d,
            "half_gradient must be (targets, m, d)");
}

template <class R> void bind_field(nb::module_ &m) {
    m.def("field",
          [](const eq::Kernel &kernel, In<double, nb::shape<-1, -1>> charges, In<R, nb::shape<-1, -1>> Y,
             Out<double, nb::shape<-1, -1>> potential, Out<double, nb::shape<-1, -1, -1>> half_gradient, int threads) {
              require(charges.shape(0) == Y.shape(0), "charges must be (n, m) for Y (n, d)");
              require_field_outputs(Y.shape(0), charges.shape(1), Y.shape(1), potential, half_gradient);
              nb::gil_scoped_release release;
              field(kernel, charges.data(), int(charges.shape(1)), Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1)),
                    potential.data(), half_gradient.data(), threads);
          },
          "kernel"_a, "charges"_a.noconvert(), "Y"_a.noconvert(), "potential"_a.noconvert(),
          "half_gradient"_a.noconvert(), "threads"_a, "Φ (n, m) and ½∇Φ (n, m, d) of m charge vectors.");
}

void spread(const eq::Mesh &mesh, const float *Y, std::int64_t n, const double *charges, int m, float *grid, int threads) {
    backend().spread_f32(mesh, Y, n, charges, m, grid, threads);
}
void spread(const eq::Mesh &mesh, const double *Y, std::int64_t n, const double *charges, int m, double *grid,
            int threads) {
    backend().spread_f64(mesh, Y, n, charges, m, grid, threads);
}
void gather(const eq::Mesh &mesh, const float *Y, std::int64_t n, const float *grid, int m, double *phi,
            double *half_gradient, int threads) {
    backend().gather_f32(mesh, Y, n, grid, m, phi, half_gradient, threads);
}
void gather(const eq::Mesh &mesh, const double *Y, std::int64_t n, const double *grid, int m, double *phi,
            double *half_gradient, int threads) {
    backend().gather_f64(mesh, Y, n, grid, m, phi, half_gradient, threads);
}
void convolve(const eq::Mesh &mesh, const float *frequencies, int m, float *grid, int threads) {
    backend().convolve_f32(mesh, frequencies, m, grid, threads);
}
void convolve(const eq::Mesh &mesh, const double *frequencies, int m, double *grid, int threads) {
    backend().convolve_f64(mesh, frequencies, m, grid, threads);
}
void near(const eq::Mesh &cells, const eq::Table &table, const float *targets, std::int64_t n_targets, const float *Y,
          std::int64_t n, int d, const double *charges, int m, double *phi, double *half_gradient, int threads) {
    backend().near_f32(cells, table, targets, n_targets, Y, n, d, charges, m, phi, half_gradient, threads);
}
void near(const eq::Mesh &cells, const eq::Table &table, const double *targets, std::int64_t n_targets, const double *Y,
          std::int64_t n, int d, const double *charges, int m, double *phi, double *half_gradient, int threads) {
    backend().near_f64(cells, table, targets, n_targets, Y, n, d, charges, m, phi, half_gradient, threads);
}

void momentum_step(const eq::Step &step, const double *gradient, std::int64_t n, int d, float *velocity, float *gain) {
    backend().momentum_step_f32(step, gradient, n, d, velocity, gain);
}
void momentum_step(const eq::Step &step, const double *gradient, std::int64_t n, int d, double *velocity, double *gain) {
    backend().momentum_step_f64(step, gradient, n, d, velocity, gain);
}

template <class R> void bind_step(nb::module_ &m) {
    m.def("momentum_step",
          [](In<double, nb::shape<-1, -1>> gradient, Out<R, nb::shape<-1, -1>> velocity, Out<R, nb::shape<-1, -1>> gain,
             double rate, double momentum, double gain_up, double gain_down, double turned, double min_gain, double max_step) {
              const std::size_t n = gradient.shape(0), d = gradient.shape(1);
              require(velocity.shape(0) == n && velocity.shape(1) == d && gain.shape(0) == n && gain.shape(1) == d,
                      "velocity and gain must have the shape of the gradient, (n, d)");
              nb::gil_scoped_release release;
              momentum_step({rate, momentum, gain_up, gain_down, turned, min_gain, max_step}, gradient.data(), std::int64_t(n),
                            int(d), velocity.data(), gain.data());
          },
          "gradient"_a.noconvert(), "velocity"_a.noconvert(), "gain"_a.noconvert(), "rate"_a, "momentum"_a, "gain_up"_a,
          "gain_down"_a, "turned"_a, "min_gain"_a, "max_step"_a,
          "v ← momentum · v − rate · gain · gradient in place, with gains updated and steps no longer than max_step.");
}

void field_offsets(const eq::Kernel &kernel, const double *charges, int m, const float *Y, std::int64_t n, int d,
                   const std::int64_t *offsets, const double *weights, std::int64_t count, const eq::Weights &graph,
                   double *phi, double *half_gradient, int threads) {
    backend().field_offsets_f32(kernel, charges, m, Y, n, d, offsets, weights, count, graph, phi, half_gradient,
                                threads);
}
void field_offsets(const eq::Kernel &kernel, const double *charges, int m, const double *Y, std::int64_t n, int d,
                   const std::int64_t *offsets, const double *weights, std::int64_t count, const eq::Weights &graph,
                   double *phi, double *half_gradient, int threads) {
    backend().field_offsets_f64(kernel, charges, m, Y, n, d, offsets, weights, count, graph, phi, half_gradient,
                                threads);
}
void field_at(const eq::Kernel &kernel, const double *charges, int m, const float *targets, std::int64_t n_targets,
              const float *Y, std::int64_t n, int d, double *phi, double *half_gradient, int threads) {
    backend().field_at_f32(kernel, charges, m, targets, n_targets, Y, n, d, phi, half_gradient, threads);
}
void field_at(const eq::Kernel &kernel, const double *charges, int m, const double *targets, std::int64_t n_targets,
              const double *Y, std::int64_t n, int d, double *phi, double *half_gradient, int threads) {
    backend().field_at_f64(kernel, charges, m, targets, n_targets, Y, n, d, phi, half_gradient, threads);
}

using Segments = In<float, nb::shape<-1, 4>>;

eq::Table make_table(const Segments &segments, int first, float scale) {
    return {segments.data(), first, std::int32_t(segments.shape(0)), scale};
}

template <class R>
void require_on_mesh(const eq::Mesh &mesh, const In<R, nb::shape<-1, -1>> &Y, std::size_t nodes) {
    require(Y.shape(1) == std::size_t(mesh.d), "Y must have a column for every axis of the mesh");
    require(nodes == std::size_t(mesh.nodes()), "grid must have a column for every node of the mesh");
}

template <class R> void bind_grid(nb::module_ &m) {
    m.def("spread",
          [](const eq::Mesh &mesh, In<R, nb::shape<-1, -1>> Y, In<double, nb::shape<-1, -1>> charges,
             Out<R, nb::shape<-1, -1>> grid, int threads) {
              require_on_mesh<R>(mesh, Y, grid.shape(1));
              require(charges.shape(0) == Y.shape(0), "charges must be (n, m) for Y (n, d)");
              require(grid.shape(0) == charges.shape(1), "grid must have a row for every column of the charges");
              nb::gil_scoped_release release;
              spread(mesh, Y.data(), std::int64_t(Y.shape(0)), charges.data(), int(charges.shape(1)), grid.data(),
                     threads);
          },
          "mesh"_a, "Y"_a.noconvert(), "charges"_a.noconvert(), "grid"_a.noconvert(), "threads"_a,
          "Spread charges (n, m) to the nodes of the mesh, (m, nodes).");
    m.def("gather",
          [](const eq::Mesh &mesh, In<R, nb::shape<-1, -1>> Y, In<R, nb::shape<-1, -1>> grid,
             Out<double, nb::shape<-1, -1>> potential, Out<double, nb::shape<-1, -1, -1>> half_gradient, int threads) {
              require_on_mesh<R>(mesh, Y, grid.shape(1));
              require_field_outputs(Y.shape(0), grid.shape(0), Y.shape(1), potential, half_gradient);
              nb::gil_scoped_release release;
              gather(mesh, Y.data(), std::int64_t(Y.shape(0)), grid.data(), int(grid.shape(0)), potential.data(),
                     half_gradient.data(), threads);
          },
          "mesh"_a, "Y"_a.noconvert(), "grid"_a.noconvert(), "potential"_a.noconvert(), "half_gradient"_a.noconvert(),
          "threads"_a, "Read Φ (n, m) and ½∇Φ (n, m, d) off a potential on the mesh, (m, nodes).");
    m.def("convolve",
          [](const eq::Mesh &mesh, In<R, nb::shape<-1, -1, -1>> frequencies, Out<R, nb::shape<-1, -1>> grid, int threads) {
              const std::int64_t last = mesh.size[mesh.d - 1], lines = 32 / std::int64_t(sizeof(R));
              std::int64_t others = 1;
              for (int c = 0; c < mesh.d; ++c) {
                  std::int64_t rest = mesh.size[c];
                  for (const int factor : {2, 3, 5})
                      while (rest > 1 && rest % factor == 0) rest /= factor;
                  require(rest == 1, "an axis of the mesh must have a number of nodes without prime factors above 5");
                  if (c < mesh.d - 1) others *= 2 * mesh.size[c];
              }
              require(std::int64_t(frequencies.shape(0)) == (last + lines) / lines &&
                          std::int64_t(frequencies.shape(1)) == others && std::int64_t(frequencies.shape(2)) == lines,
                      "frequencies must be (groups of the last axis, frequencies of the others, frequencies in a group)");
              require(std::int64_t(grid.shape(1)) == mesh.nodes(), "grid must be (m, nodes)");
              nb::gil_scoped_release release;
              convolve(mesh, frequencies.data(), int(grid.shape(0)), grid.data(), threads);
          },
          "mesh"_a, "frequencies"_a.noconvert(), "grid"_a.noconvert(), "threads"_a,
          "Convolve grids (m, nodes) with a kernel given at its frequencies, in place.");
    m.def("near",
          [](const eq::Mesh &cells, Segments segments, int first, float scale, In<R, nb::shape<-1, -1>> targets,
             In<R, nb::shape<-1, -1>> Y, In<double, nb::shape<-1, -1>> charges, Out<double, nb::shape<-1, -1>> potential,
             Out<double, nb::shape<-1, -1, -1>> half_gradient, int threads) {
              require(Y.shape(1) == std::size_t(cells.d), "Y must have a column for every axis of the cells");
              require(targets.shape(1) == Y.shape(1), "targets must be (n_targets, d) for Y (n, d)");
              require(charges.shape(0) == Y.shape(0), "charges must be (n, m) for Y (n, d)");
              require_field_outputs(targets.shape(0), charges.shape(1), Y.shape(1), potential, half_gradient);
              nb::gil_scoped_release release;
              near(cells, make_table(segments, first, scale), targets.data() == Y.data() ? nullptr : targets.data(),
                   std::int64_t(targets.shape(0)), Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1)), charges.data(),
                   int(charges.shape(1)), potential.data(), half_gradient.data(), threads);
          },
          "cells"_a, "segments"_a.noconvert(), "first"_a, "scale"_a, "targets"_a.noconvert(), "Y"_a.noconvert(),
          "charges"_a.noconvert(), "potential"_a.noconvert(), "half_gradient"_a.noconvert(), "threads"_a,
          "Add the pairs nearer than one cell to Φ and ½∇Φ at the targets; targets that are Y itself leave themselves out.");
}

template <class R> void bind_sampled(nb::module_ &m) {
    using Rows = In<R, nb::shape<-1, -1>>;
    using Potential = Out<double, nb::shape<-1, -1>>;
    using Gradient = Out<double, nb::shape<-1, -1, -1>>;
    const auto check = [](const In<double, nb::shape<-1, -1>> &charges, const Rows &Y, std::size_t targets,
                          const Potential &potential, const Gradient &half_gradient) {
        require(charges.shape(0) == Y.shape(0), "charges must be (n, m) for Y (n, d)");
        require_field_outputs(targets, charges.shape(1), Y.shape(1), potential, half_gradient);
    };
    m.def("field_offsets",
          [check](const eq::Kernel &kernel, In<double, nb::shape<-1, -1>> charges, Rows Y,
                  In<std::int64_t, nb::shape<-1>> offsets, In<double, nb::shape<-1>> weights,
                  In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices, Potential potential,
                  Gradient half_gradient, int threads) {
              check(charges, Y, Y.shape(0), potential, half_gradient);
              require(weights.shape(0) == offsets.shape(0), "there must be a weight for every offset");
              for (std::size_t s = 0; s < offsets.shape(0); ++s)
                  require(offsets.data()[s] >= 1 && offsets.data()[s] < std::int64_t(Y.shape(0)),
                          "offsets must be from 1 to n - 1");
              eq::Weights graph;
              if (indptr.shape(0) > 0) {
                  require_csr(indptr, indices.shape(0), Y.shape(0));
                  graph.indptr = indptr.data();
                  graph.indices = indices.data();
              }
              nb::gil_scoped_release release;
              field_offsets(kernel, charges.data(), int(charges.shape(1)), Y.data(), std::int64_t(Y.shape(0)),
                            int(Y.shape(1)), offsets.data(), weights.data(), std::int64_t(offsets.shape(0)),
                            graph, potential.data(), half_gradient.data(), threads);
          },
          "kernel"_a, "charges"_a.noconvert(), "Y"_a.noconvert(), "offsets"_a.noconvert(), "weights"_a.noconvert(),
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "potential"_a.noconvert(), "half_gradient"_a.noconvert(),
          "threads"_a,
          "Φ (n, m) and ½∇Φ (n, m, d) of the points at these offsets alone, each with its weight; the pairs of a graph"
          " (CSR; an empty indptr for none) have weight 1 instead.");
    m.def("field_at",
          [check](const eq::Kernel &kernel, In<double, nb::shape<-1, -1>> charges, Rows targets, Rows Y,
                  Potential potential, Gradient half_gradient, int threads) {
              check(charges, Y, targets.shape(0), potential, half_gradient);
              require(targets.shape(1) == Y.shape(1), "targets must be (n_targets, d) for Y (n, d)");
              nb::gil_scoped_release release;
              field_at(kernel, charges.data(), int(charges.shape(1)), targets.data(), std::int64_t(targets.shape(0)),
                       Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1)), potential.data(), half_gradient.data(),
                       threads);
          },
          "kernel"_a, "charges"_a.noconvert(), "targets"_a.noconvert(), "Y"_a.noconvert(), "potential"_a.noconvert(),
          "half_gradient"_a.noconvert(), "threads"_a, "Φ and ½∇Φ of all points Y at targets (n_targets, d).");
}

template <class R> void bind_conditional(nb::module_ &m) {
    using Perplexities = In<double, nb::shape<-1>>;
    using Saturated = Out<std::uint8_t, nb::shape<-1>>;
    m.def("conditional_points",
          [](In<double, nb::shape<-1, -1>> X, Perplexities perplexities, Out<R, nb::shape<-1, -1>> P, Saturated saturated,
             int threads) {
              const std::size_t n = X.shape(0);
              require(P.shape(0) == n && P.shape(1) == n && saturated.shape(0) == n, "P must be (n, n) and saturated (n,)");
              nb::gil_scoped_release release;
              eq::Distances D;
              D.points = X.data();
              D.dimension = std::int64_t(X.shape(1));
              conditional(D, std::int64_t(X.shape(0)), perplexities.data(), int(perplexities.shape(0)), P.data(),
                          saturated.data(), threads);
          },
          "X"_a.noconvert(), "perplexities"_a.noconvert(), "P"_a.noconvert(), "saturated"_a.noconvert(), "threads"_a,
          "Rows p_{j|i} (n, n) from points, by Euclidean distance.");
    m.def("conditional_dense",
          [](In<double, nb::shape<-1, -1>> D2, Perplexities perplexities, Out<R, nb::shape<-1, -1>> P,
             Saturated saturated, int threads) {
              const std::size_t n = D2.shape(0);
              require(D2.shape(1) == n && P.shape(0) == n && P.shape(1) == n && saturated.shape(0) == n, "P must be (n, n) and saturated (n,)");
              nb::gil_scoped_release release;
              eq::Distances D;
              D.dense = D2.data();
              conditional(D, std::int64_t(D2.shape(0)), perplexities.data(), int(perplexities.shape(0)), P.data(),
                          saturated.data(), threads);
          },
          "D2"_a.noconvert(), "perplexities"_a.noconvert(), "P"_a.noconvert(), "saturated"_a.noconvert(), "threads"_a,
          "Rows p_{j|i} (n, n) from squared distances.");
    m.def("conditional_sparse",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<double, nb::shape<-1>> D2, Perplexities perplexities,
             Out<R, nb::shape<-1>> P, Saturated saturated, int threads) {
              require_csr(indptr, D2.shape(0), saturated.shape(0));
              require(P.shape(0) == D2.shape(0), "P must have the length of D2");
              nb::gil_scoped_release release;
              eq::Distances D;
              D.indptr = indptr.data();
              D.graph = D2.data();
              conditional(D, std::int64_t(indptr.shape(0)) - 1, perplexities.data(), int(perplexities.shape(0)),
                          P.data(), saturated.data(), threads);
          },
          "indptr"_a.noconvert(), "D2"_a.noconvert(), "perplexities"_a.noconvert(), "P"_a.noconvert(),
          "saturated"_a.noconvert(), "threads"_a, "p_{j|i} over the stored entries of a CSR graph of squared distances.");
}

template <class R> void bind_permute(nb::module_ &m) {
    m.def("permute",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
             In<R, nb::shape<-1>> values, In<std::int64_t, nb::shape<-1>> order, In<std::int32_t, nb::shape<-1>> place,
             Out<std::int64_t, nb::shape<-1>> out_indptr, Out<std::int32_t, nb::shape<-1>> out_indices,
             Out<R, nb::shape<-1>> out_values) {
              const std::size_t n = order.shape(0), entries = values.shape(0);
              require_csr(indptr, entries, n);
              require(indices.shape(0) == entries && place.shape(0) == n, "indices and place must fit values and order");
              require(out_indptr.shape(0) == n + 1 && out_indices.shape(0) == entries && out_values.shape(0) == entries,
                      "the outputs must have the sizes of the inputs");
              for (std::size_t i = 0; i < n; ++i)
                  require(order(i) >= 0 && order(i) < std::int64_t(n) && place(std::size_t(order(i))) == std::int32_t(i),
                          "place must be the inverse of order");
              nb::gil_scoped_release release;
              eq::permute(indptr.data(), indices.data(), values.data(), std::int64_t(n), order.data(), place.data(),
                          out_indptr.data(), out_indices.data(), out_values.data());
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "order"_a.noconvert(),
          "place"_a.noconvert(), "out_indptr"_a.noconvert(), "out_indices"_a.noconvert(), "out_values"_a.noconvert(),
          "A[order][:, order] for CSR A, where place[order[i]] = i.");
}

template <class R> void bind_stress(nb::module_ &m) {
    using Rows = In<R, nb::shape<-1, -1>>;
    using Gradient = Out<double, nb::shape<-1, -1>>;
    const auto check = [](const Rows &Y, const Gradient &half_gradient) {
        require(half_gradient.shape(0) == Y.shape(0) && half_gradient.shape(1) == Y.shape(1),
                "half gradients must have the shapes of the maps");
    };
    m.def("stress_stored",
          [check](In<float, nb::shape<-1>> delta, In<float, nb::shape<-1>> weights, Rows Y, Gradient half_gradient,
                  int threads) {
              const std::size_t n = Y.shape(0);
              check(Y, half_gradient);
              require(delta.shape(0) == n * (n - 1) / 2, "delta must be condensed, n (n - 1) / 2 numbers");
              require(weights.shape(0) == 0 || weights.shape(0) == delta.shape(0), "weights must be empty or as delta");
              eq::Targets targets;
              targets.condensed = delta.data();
              targets.weights = weights.shape(0) == 0 ? nullptr : weights.data();
              nb::gil_scoped_release release;
              return stress_pairs(targets, Y.data(), std::int64_t(n), int(Y.shape(1)), half_gradient.data(), threads);
          },
          "delta"_a.noconvert(), "weights"_a.noconvert(), "Y"_a.noconvert(), "half_gradient"_a.noconvert(), "threads"_a,
          "Stress and half its gradient over all pairs i < j, δ condensed; empty `weights` are all 1.");
    m.def("stress_points",
          [check](In<float, nb::shape<-1, -1>> X, Rows Y, Gradient half_gradient, int threads) {
              check(Y, half_gradient);
              require(X.shape(0) == Y.shape(0) && X.shape(1) > 0, "X must be (n, D) for Y (n, d)");
              eq::Targets targets;
              targets.points = X.data();
              targets.dimension = std::int64_t(X.shape(1));
              nb::gil_scoped_release release;
              return stress_pairs(targets, Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1)), half_gradient.data(),
                                  threads);
          },
          "X"_a.noconvert(), "Y"_a.noconvert(), "half_gradient"_a.noconvert(), "threads"_a,
          "The same with δ the Euclidean distances of X (n, D), computed in blocks and not kept.");
    m.def("stress_between",
          [check](In<float, nb::shape<-1, -1>> delta, In<float, nb::shape<-1>> weights, Rows Y, Rows T,
                  Gradient half_gradient, Gradient half_gradient_T, int threads) {
              const std::size_t n = Y.shape(0), m = T.shape(0);
              check(Y, half_gradient);
              check(T, half_gradient_T);
              require(delta.shape(0) == n && delta.shape(1) == m && weights.shape(0) == m && T.shape(1) == Y.shape(1),
                      "delta must be (n, m) and weights (m,) for Y (n, d) and T (m, d)");
              nb::gil_scoped_release release;
              return stress_between(delta.data(), weights.data(), Y.data(), std::int64_t(n), T.data(), std::int64_t(m),
                                    int(Y.shape(1)), half_gradient.data(), half_gradient_T.data(), threads);
          },
          "delta"_a.noconvert(), "weights"_a.noconvert(), "Y"_a.noconvert(), "T"_a.noconvert(),
          "half_gradient"_a.noconvert(), "half_gradient_T"_a.noconvert(), "threads"_a,
          "Stress between points Y and T, δ (n, m), a weight for each of T; half its gradients with respect to both.");
    m.def("stress_listed",
          [check](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
                  In<float, nb::shape<-1>> delta, In<float, nb::shape<-1>> values, Rows Y, Out<double, nb::shape<-1>> stress,
                  Gradient half_gradient, int threads) {
              const std::size_t n = Y.shape(0);
              check(Y, half_gradient);
              require_csr(indptr, indices.shape(0), n);
              require(delta.shape(0) == indices.shape(0) && values.shape(0) == indices.shape(0) && stress.shape(0) == n,
                      "delta and values must be as indices, and stress (n,)");
              eq::Weights A = weights(values.data());
              A.indptr = indptr.data();
              A.indices = indices.data();
              nb::gil_scoped_release release;
              stress_listed(A, delta.data(), Y.data(), std::int64_t(n), int(Y.shape(1)), stress.data(),
                            half_gradient.data(), threads);
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "delta"_a.noconvert(), "values"_a.noconvert(),
          "Y"_a.noconvert(), "stress"_a.noconvert(), "half_gradient"_a.noconvert(), "threads"_a,
          "The stress of each point's pairs, and half the gradient of that of all, over a symmetric CSR pattern.");
}

void memberships(const std::int64_t *indptr, const double *D2, std::int64_t n, double target, double floor, float *W,
                 int threads) {
    backend().memberships_f32(indptr, D2, n, target, floor, W, threads);
}
void memberships(const std::int64_t *indptr, const double *D2, std::int64_t n, double target, double floor, double *W,
                 int threads) {
    backend().memberships_f64(indptr, D2, n, target, floor, W, threads);
}

template <class R> void bind_memberships(nb::module_ &m) {
    m.def("memberships",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<double, nb::shape<-1>> D2, double target, double floor,
             Out<R, nb::shape<-1>> W, int threads) {
              require(indptr.shape(0) > 0, "indptr must have one entry more than there are rows");
              require_csr(indptr, D2.shape(0), indptr.shape(0) - 1);
              require(W.shape(0) == D2.shape(0), "W must have the length of D2");
              nb::gil_scoped_release release;
              memberships(indptr.data(), D2.data(), std::int64_t(indptr.shape(0)) - 1, target, floor, W.data(), threads);
          },
          "indptr"_a.noconvert(), "D2"_a.noconvert(), "target"_a, "floor"_a, "W"_a.noconvert(), "threads"_a,
          "exp(-max(0, r - ρ_i) / σ_i) over the stored entries of a CSR graph of squared distances, of one total per row.");
}

template <class R> void bind_symmetrize(nb::module_ &m) {
    m.def("symmetrize",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices, In<R, nb::shape<-1>> values,
             Out<std::int64_t, nb::shape<-1>> out_indptr, Out<std::int32_t, nb::shape<-1>> out_indices,
             Out<R, nb::shape<-1>> out_values, int threads) {
              const std::size_t n = out_indptr.shape(0) - 1, entries = values.shape(0);
              require(out_indptr.shape(0) > 0 && indices.shape(0) == entries, "indices and values must be of one length");
              require_csr(indptr, entries, n);
              require(out_indices.shape(0) == 2 * entries && out_values.shape(0) == 2 * entries,
                      "the outputs must have room for twice the entries");
              for (std::size_t t = 0; t < entries; ++t)
                  require(indices.data()[t] >= 0 && std::size_t(indices.data()[t]) < n, "a column is out of range");
              nb::gil_scoped_release release;
              return eq::symmetrize(indptr.data(), indices.data(), values.data(), std::int64_t(n),
                                    out_indptr.data(), out_indices.data(), out_values.data(), threads);
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
          "out_indptr"_a.noconvert(), "out_indices"_a.noconvert(), "out_values"_a.noconvert(), "threads"_a,
          "A + Aᵀ of a CSR matrix, with sorted columns; returns how many entries of the outputs it fills.");
}

}  // namespace

void bind_spaces(nb::module_ &m);

NB_MODULE(_core, m) {
    m.doc() = "Compiled core: edges and field, by direct sums, on a mesh and from samples; perplexities; the optimiser's step; stress.";
    m.def("instruction_set", &instruction_set, "The instruction set in use: avx2 or base.");
    m.def("use_base_instruction_set", &use_base_instruction_set, "base"_a,
          "Run without AVX2, or with it again where the machine has it; the results are the same.");

    nb::class_<eq::Kernel>(m, "Kernel", "A built-in radial kernel k(d2).")
        .def_prop_ro("rational",
                     [](const eq::Kernel &kernel) { return kernel.family != eq::Kernel::Family::regularized_power && kernel.family != eq::Kernel::Family::log_complement; },
                     "Whether k'/k is a rational function of d2, without exp or log.")
        .def_static("gaussian", [] { return eq::Kernel{eq::Kernel::Family::gaussian, 0, 0, 0}; }, "exp(-d2)")
        .def_static("shifted_power",
                    [](double a, double b, double c) { return eq::Kernel{eq::Kernel::Family::shifted_power, a, b, c}; },
                    "a"_a, "b"_a, "c"_a, "(a + b d2)^-c")
        .def_static("clamped_power",
                    [](double b, double c) { return eq::Kernel{eq::Kernel::Family::clamped_power, 0, b, c}; }, "b"_a,
                    "c"_a, "max(d2, b)^-c")
        .def_static("regularized_power",
                    [](double a, double b, double c) { return eq::Kernel{eq::Kernel::Family::regularized_power, a, b, c}; },
                    "a"_a, "b"_a, "c"_a, "1 / (a + b d2^c)")
        .def_static("log_complement",
                    [](double a, double b, double c) { return eq::Kernel{eq::Kernel::Family::log_complement, a, b, c}; },
                    "a"_a, "b"_a, "c"_a, "log(1 + 1 / (b (a + d2)^c))")
        .def_static("tabulated",
                    [](Segments segments, int first, float scale) {
                        eq::Kernel kernel;
                        kernel.family = eq::Kernel::Family::tabulated;
                        kernel.table = make_table(segments, first, scale);
                        return kernel;
                    },
                    "segments"_a.noconvert(), "first"_a, "scale"_a,
                    "For edges with b = -1: tables of ψ_b and k^b k' for the true b; for sampled fields: of k and k'."
                    " The arrays must outlive it.");

    nb::class_<eq::Mesh>(m, "Mesh", "A regular grid in 1 to 3 dimensions.")
        .def("__init__",
             [](eq::Mesh *mesh, In<double, nb::shape<-1>> origin, double h, In<std::int64_t, nb::shape<-1>> size) {
                 require(origin.shape(0) >= 1 && origin.shape(0) <= 3 && size.shape(0) == origin.shape(0),
                         "a mesh has 1 to 3 axes");
                 new (mesh) eq::Mesh();
                 mesh->d = int(origin.shape(0));
                 mesh->inverse_h = 1 / h;
                 for (int c = 0; c < mesh->d; ++c) {
                     mesh->origin[c] = origin.data()[c];
                     mesh->size[c] = size.data()[c];
                 }
             },
             "origin"_a, "h"_a, "size"_a);

    m.def("pair_distances",
          [](In<double, nb::shape<-1, -1>> X, In<std::int32_t, nb::shape<-1, -1>> neighbors,
             Out<double, nb::shape<-1, -1>> d2, int threads) {
              require(neighbors.shape(0) == X.shape(0), "neighbors must be (n, k) for X (n, D)");
              require(d2.shape(0) == X.shape(0) && d2.shape(1) == neighbors.shape(1),
                      "d2 must have the shape of the neighbours, (n, k)");
              nb::gil_scoped_release release;
              backend().pair_distances(X.data(), std::int64_t(X.shape(0)), std::int64_t(X.shape(1)), neighbors.data(),
                                       int(neighbors.shape(1)), d2.data(), threads);
          },
          "X"_a.noconvert(), "neighbors"_a.noconvert(), "d2"_a.noconvert(), "threads"_a,
          "Squared Euclidean distances between each row of X and its listed neighbours.");

    m.def("edges_to",
          [](const eq::Kernel &kernel, In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
             In<float, nb::shape<-1>> values, In<float, nb::shape<-1, -1>> targets, In<float, nb::shape<-1, -1>> Y,
             Out<double, nb::shape<-1, -1>> force, int threads) {
              require(indices.shape(0) == values.shape(0), "indices and values must be of one length");
              require_csr(indptr, values.shape(0), targets.shape(0));
              require(targets.shape(1) == Y.shape(1), "targets must be (n_targets, d) for Y (n, d)");
              require(force.shape(0) == targets.shape(0) && force.shape(1) == Y.shape(1),
                      "force must be (n_targets, d)");
              nb::gil_scoped_release release;
              eq::Weights A = weights(values.data());
              A.indptr = indptr.data();
              A.indices = indices.data();
              return backend().edges_to(kernel, A, targets.data(), std::int64_t(targets.shape(0)), Y.data(),
                                        std::int64_t(Y.shape(0)), int(Y.shape(1)), force.data(), threads);
          },
          "kernel"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "targets"_a.noconvert(),
          "Y"_a.noconvert(), "force"_a.noconvert(), "threads"_a,
          "E (n_targets, d) from targets to the points they list; False for a kernel that is not rational or tabulated.");

    m.def("negatives_step",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
             In<float, nb::shape<-1>> period, In<float, nb::shape<-1>> degrees, Out<float, nb::shape<-1>> due,
             In<float, nb::shape<-1, -1>> Y,
             Out<float, nb::shape<-1, -1>> out, double a, double b, double epsilon, double clip, double rate,
             double exaggeration, double until, int count, std::uint64_t seed, std::int64_t step, int threads) {
              const std::size_t n = Y.shape(0), entries = indices.shape(0);
              require(period.shape(0) == entries && due.shape(0) == entries, "period and due must have an entry per edge");
              require_csr(indptr, entries, n);
              require(degrees.shape(0) == n, "degrees must be (n,)");
              require(out.shape(0) == n && out.shape(1) == Y.shape(1), "out must have the shape of Y, (n, d)");
              require(out.data() != Y.data(), "out must be another array than Y");
              nb::gil_scoped_release release;
              eq::Weights graph = weights(period.data());
              graph.indptr = indptr.data();
              graph.indices = indices.data();
              backend().negatives_step({a, b, epsilon, clip, rate, exaggeration, until, count, seed, step}, graph,
                                       degrees.data(), due.data(), Y.data(), std::int64_t(n), int(Y.shape(1)), out.data(), threads);
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "period"_a.noconvert(), "degrees"_a.noconvert(), "due"_a.noconvert(), "Y"_a.noconvert(),
          "out"_a.noconvert(), "a"_a, "b"_a, "epsilon"_a, "clip"_a, "rate"_a, "exaggeration"_a, "until"_a, "count"_a,
          "seed"_a, "step"_a, "threads"_a,
          "One step by the edges due before `until`, each with `count` negatives, under k = 1 / (1 + a d2^b).");

    bind_edges<float, float>(m);
    bind_edges<float, double>(m);
    bind_edges<double, float>(m);
    bind_edges<double, double>(m);
    bind_field<float>(m);
    bind_field<double>(m);
    bind_grid<float>(m);
    bind_grid<double>(m);
    bind_step<float>(m);
    bind_step<double>(m);
    bind_sampled<float>(m);
    bind_sampled<double>(m);
    bind_conditional<float>(m);
    bind_conditional<double>(m);
    m.def("nearest",
          [](In<float, nb::shape<-1, -1>> dots, In<float, nb::shape<-1>> norms, Out<std::int32_t, nb::shape<-1, -1>> out) {
              require(norms.shape(0) == dots.shape(1) && out.shape(0) == dots.shape(0), "norms and out must fit dots");
              require(out.shape(1) >= 1 && out.shape(1) <= dots.shape(1), "there must be candidates for every neighbour");
              nb::gil_scoped_release release;
              eq::nearest(dots.data(), norms.data(), std::int64_t(dots.shape(0)), std::int64_t(dots.shape(1)),
                          std::int64_t(out.shape(1)), out.data());
          },
          "dots"_a.noconvert(), "norms"_a.noconvert(), "out"_a.noconvert(),
          "The columns of the smallest norm - 2 dot in each row, from the smallest on.");
    bind_permute<float>(m);
    bind_permute<double>(m);
    m.def("condensed_distances",
          [](In<float, nb::shape<-1, -1>> X, Out<float, nb::shape<-1>> out, int threads) {
              const std::size_t n = X.shape(0);
              require(X.shape(1) > 0 && out.shape(0) == n * (n - 1) / 2, "out must have n (n - 1) / 2 numbers");
              nb::gil_scoped_release release;
              backend().condensed_distances(X.data(), std::int64_t(n), std::int64_t(X.shape(1)), out.data(), threads);
          },
          "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
          "Euclidean distances of the pairs i < j, row by row, in float32.");

    bind_stress<float>(m);
    bind_stress<double>(m);
    bind_memberships<float>(m);
    bind_memberships<double>(m);
    bind_symmetrize<float>(m);
    bind_symmetrize<double>(m);
    bind_spaces(m);
    bind_paths(m);
}
