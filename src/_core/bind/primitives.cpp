// Bindings of kernels, edges, and fields by direct summation and from samples.
#include "bind/common.hpp"

namespace {

using Family = eq::Kernel::Family;

eq::Kernel make_kernel(Family family, double a, double b, double c) {
    eq::Kernel kernel;
    kernel.family = family;
    kernel.a = a;
    kernel.b = b;
    kernel.c = c;
    return kernel;
}

void bind_kernel(nb::module_ &m) {
    nb::class_<eq::Kernel>(m, "Kernel", "A built-in radial kernel k(d2).")
        .def_prop_ro(
            "rational",
            [](const eq::Kernel &kernel) {
                return kernel.family != Family::regularized_power && kernel.family != Family::log_complement;
            },
            "Whether k'/k is a rational function of d2, without exp or log.")
        .def_static(
            "gaussian", [] { return make_kernel(Family::gaussian, 0, 0, 0); }, "exp(-d2)")
        .def_static(
            "shifted_power", [](double a, double b, double c) { return make_kernel(Family::shifted_power, a, b, c); },
            "a"_a, "b"_a, "c"_a, "(a + b d2)^-c")
        .def_static(
            "clamped_power", [](double b, double c) { return make_kernel(Family::clamped_power, 0, b, c); }, "b"_a,
            "c"_a, "max(d2, b)^-c")
        .def_static(
            "regularized_power",
            [](double a, double b, double c) { return make_kernel(Family::regularized_power, a, b, c); }, "a"_a, "b"_a,
            "c"_a, "1 / (a + b d2^c)")
        .def_static(
            "log_complement", [](double a, double b, double c) { return make_kernel(Family::log_complement, a, b, c); },
            "a"_a, "b"_a, "c"_a, "log(1 + 1 / (b (a + d2)^c))")
        .def_static(
            "tabulated",
            [](Segments segments, int first, float scale) {
                eq::Kernel kernel;
                kernel.family = Family::tabulated;
                kernel.table = make_table(segments, first, scale);
                return kernel;
            },
            array("segments"), "first"_a, "scale"_a, nb::keep_alive<0, 1>(),
            "For edges with b = -1: a table of ψ_b and k^b k' for the true b; for sampled fields: of k and k'.");
}

// R is the type of the map and T that of the weights.
template <class R, class T> void bind_edges(nb::module_ &m) {
    m.def(
        "edges_dense",
        [](const eq::Kernel &kernel, double b, Matrix<T> A, Matrix<R> Y, OutVector<double> potential,
           OutMatrix<double> force, int threads) {
            require(A.shape(0) == Y.shape(0) && A.shape(1) == Y.shape(0), "A must have shape (n, n) for Y (n, d)");
            const eq::EdgeSums out = edge_sums(Y.shape(0), Y.shape(1), potential, force);
            eq::ReleaseGil release;
            ops<R>().edges(kernel, b, eq::Weights(A.data()), points(Y), out, threads);
        },
        "kernel"_a, "b"_a, array("A"), array("Y"), array("potential"), array("force"), "threads"_a,
        "Ψ (n,) and E (n, d) of all pairs, with dense A (n, n). An empty `potential` skips Ψ.");
    m.def(
        "edges_sparse",
        [](const eq::Kernel &kernel, double b, const eq::Csr &A, Vector<T> values, Matrix<R> Y,
           OutVector<double> potential, OutMatrix<double> force, int threads) {
            const eq::Weights weights(A, entry_values(A, values, "values must have one element per entry of A"));
            require(A.rows == std::int64_t(Y.shape(0)) && A.columns == A.rows, "A must have shape (n, n) for Y (n, d)");
            const eq::EdgeSums out = edge_sums(Y.shape(0), Y.shape(1), potential, force);
            keep_apart(A, potential, force);
            eq::ReleaseGil release;
            ops<R>().edges(kernel, b, weights, points(Y), out, threads);
        },
        "kernel"_a, "b"_a, "A"_a, array("values"), array("Y"), array("potential"), array("force"), "threads"_a,
        "Ψ (n,) and E (n, d) of the stored pairs of A (n, n). An empty `potential` skips Ψ.");
}

void bind_edges_to(nb::module_ &m) {
    m.def(
        "edges_to",
        [](const eq::Kernel &kernel, const eq::Csr &A, Vector<float> values, Matrix<float> targets, Matrix<float> Y,
           OutMatrix<double> force, int threads) {
            const eq::Weights weights(A, entry_values(A, values, "values must have one element per entry of A"));
            require(A.rows == std::int64_t(targets.shape(0)) && A.columns == std::int64_t(Y.shape(0)),
                    "A must have shape (n_targets, n) for targets (n_targets, d) and Y (n, d)");
            require(targets.shape(1) == Y.shape(1), "targets must have shape (n_targets, d) for Y (n, d)");
            require(force.shape(0) == targets.shape(0) && force.shape(1) == Y.shape(1),
                    "force must have shape (n_targets, d)");
            keep_apart(A, force);
            eq::ReleaseGil release;
            return backend().edges_to(kernel, weights, points(targets), points(Y), force.data(), threads);
        },
        "kernel"_a, "A"_a, array("values"), array("targets"), array("Y"), array("force"), "threads"_a,
        "E (n_targets, d) from targets to the points that A (n_targets, n) lists. Returns False for a kernel that is"
        " neither rational nor tabulated.");
}

template <class R> void bind_fields(nb::module_ &m) {
    const auto check = [](const Matrix<double> &charges, const Matrix<R> &Y) {
        require(charges.shape(0) == Y.shape(0), "charges must have shape (n, m) for Y (n, d)");
    };
    m.def(
        "field",
        [check](const eq::Kernel &kernel, Matrix<double> charges, Matrix<R> Y, OutMatrix<double> potential,
                OutCube half_gradient, int threads) {
            check(charges, Y);
            const auto out = field_sums(Y.shape(0), charges.shape(1), Y.shape(1), potential, half_gradient);
            eq::ReleaseGil release;
            ops<R>().field(kernel, as_charges(charges), points(Y), out, threads);
        },
        "kernel"_a, array("charges"), array("Y"), array("potential"), array("half_gradient"), "threads"_a,
        "Φ (n, m) and ½∇Φ (n, m, d) of charges (n, m).");
    m.def(
        "field_at",
        [check](const eq::Kernel &kernel, Matrix<double> charges, Matrix<R> targets, Matrix<R> Y,
                OutMatrix<double> potential, OutCube half_gradient, int threads) {
            check(charges, Y);
            require(targets.shape(1) == Y.shape(1), "targets must have shape (n_targets, d) for Y (n, d)");
            const auto out = field_sums(targets.shape(0), charges.shape(1), Y.shape(1), potential, half_gradient);
            eq::ReleaseGil release;
            ops<R>().field_at(kernel, as_charges(charges), points(targets), points(Y), out, threads);
        },
        "kernel"_a, array("charges"), array("targets"), array("Y"), array("potential"), array("half_gradient"),
        "threads"_a, "Φ and ½∇Φ of all points Y at targets (n_targets, d).");
    m.def(
        "field_offsets",
        [check](const eq::Kernel &kernel, Matrix<double> charges, Matrix<R> Y, Vector<std::int64_t> offsets,
                Vector<double> weights, const eq::Csr *graph, OutMatrix<double> potential, OutCube half_gradient,
                int threads) {
            const std::int64_t n = std::int64_t(Y.shape(0));
            check(charges, Y);
            require(weights.shape(0) == offsets.shape(0), "weights must have one element per offset");
            for (std::size_t s = 0; s < offsets.shape(0); ++s)
                require(offsets(s) >= 1 && offsets(s) < n, "offsets must be between 1 and n - 1");
            require(graph == nullptr || (graph->rows == n && graph->columns == n), "graph must have shape (n, n)");
            const auto out = field_sums(Y.shape(0), charges.shape(1), Y.shape(1), potential, half_gradient);
            if (graph != nullptr) keep_apart(*graph, potential, half_gradient);
            keep_apart(offsets, potential, half_gradient);
            const eq::Offsets sample{offsets.data(), weights.data(), std::int64_t(offsets.shape(0))};
            eq::ReleaseGil release;
            ops<R>().field_offsets(kernel, as_charges(charges), points(Y), sample,
                                   graph == nullptr ? eq::Csr() : *graph, out, threads);
        },
        "kernel"_a, array("charges"), array("Y"), array("offsets"), array("weights"), "graph"_a.none(),
        array("potential"), array("half_gradient"), "threads"_a,
        "Φ (n, m) and ½∇Φ (n, m, d) of the points at these offsets only, each with its weight. The pairs of the graph"
        " (n, n), unless it is None, have weight 1 instead.");
}

}  // namespace

void bind_primitives(nb::module_ &m) {
    bind_kernel(m);
    bind_edges<float, float>(m);
    bind_edges<float, double>(m);
    bind_edges<double, float>(m);
    bind_edges<double, double>(m);
    bind_edges_to(m);
    bind_fields<float>(m);
    bind_fields<double>(m);
}
