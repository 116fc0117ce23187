// Thin bindings: types and ranks are checked by nanobind, sizes here, meaning in Python.
#include "bind/common.hpp"

namespace {

#ifdef EQ_HAVE_AVX2
bool use_avx2 = __builtin_cpu_supports("avx2");
#else
constexpr bool use_avx2 = false;
#endif

const char *instruction_set() { return use_avx2 ? "avx2" : "base"; }

void use_base_instruction_set(bool base) {
#ifdef EQ_HAVE_AVX2
    use_avx2 = !base && __builtin_cpu_supports("avx2");
#else
    (void)base;
#endif
}

}  // namespace

const eq::Backend &backend() {
#ifdef EQ_HAVE_AVX2
    if (use_avx2) return eq::avx2::backend;
#endif
    return eq::base::backend;
}

namespace {

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

}  // namespace

void bind_mesh(nb::module_ &m);
void bind_steps(nb::module_ &m);
void bind_affinities(nb::module_ &m);
void bind_sparse(nb::module_ &m);
void bind_stress(nb::module_ &m);
void bind_spaces(nb::module_ &m);
void bind_paths(nb::module_ &m);
void bind_ranks(nb::module_ &m);

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

    bind_edges<float, float>(m);
    bind_edges<float, double>(m);
    bind_edges<double, float>(m);
    bind_edges<double, double>(m);
    bind_field<float>(m);
    bind_field<double>(m);
    bind_sampled<float>(m);
    bind_sampled<double>(m);
    bind_mesh(m);
    bind_steps(m);
    bind_affinities(m);
    bind_sparse(m);
    bind_stress(m);
    bind_spaces(m);
    bind_paths(m);
    bind_ranks(m);
}
