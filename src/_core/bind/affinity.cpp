// Bindings of affinities: the perplexity search and fuzzy memberships.
#include "bind/common.hpp"

namespace {

eq::Perplexities as_perplexities(const Vector<double> &perplexities) {
    require(perplexities.shape(0) <= MOST_POINTS, "there must be fewer than 2^31 perplexities");
    return {perplexities.data(), int(perplexities.shape(0))};
}

template <class R> void bind_conditional(nb::module_ &m) {
    using Saturated = OutVector<std::uint8_t>;
    const auto check = [](std::size_t n, const OutMatrix<R> &P, const Saturated &saturated) {
        require(n <= MOST_POINTS, "there must be fewer than 2^31 points");
        require(P.shape(0) == n && P.shape(1) == n && saturated.shape(0) == n,
                "P must have shape (n, n) and saturated (n,)");
    };
    m.def(
        "conditional_points",
        [check](Matrix<double> X, Vector<double> perplexities, OutMatrix<R> P, Saturated saturated, int threads) {
            check(X.shape(0), P, saturated);
            eq::Distances D;
            D.n = std::int64_t(X.shape(0));
            D.points = X.data();
            D.dimension = std::int64_t(X.shape(1));
            eq::ReleaseGil release;
            ops<R>().conditional(D, as_perplexities(perplexities), P.data(), saturated.data(), threads);
        },
        array("X"), array("perplexities"), array("P"), array("saturated"), "threads"_a,
        "Rows p_{j|i} (n, n) from the Euclidean distances of points X (n, D).");
    m.def(
        "conditional_dense",
        [check](Matrix<double> D2, Vector<double> perplexities, OutMatrix<R> P, Saturated saturated, int threads) {
            check(D2.shape(0), P, saturated);
            require(D2.shape(1) == D2.shape(0), "D2 must be square");
            eq::Distances D;
            D.n = std::int64_t(D2.shape(0));
            D.dense = D2.data();
            eq::ReleaseGil release;
            ops<R>().conditional(D, as_perplexities(perplexities), P.data(), saturated.data(), threads);
        },
        array("D2"), array("perplexities"), array("P"), array("saturated"), "threads"_a,
        "Rows p_{j|i} (n, n) from squared distances (n, n).");
    m.def(
        "conditional_sparse",
        [](const eq::Csr &graph, Vector<double> D2, Vector<double> perplexities, OutVector<R> P, Saturated saturated,
           int threads) {
            eq::Distances D;
            D.n = graph.rows;
            D.graph = graph;
            D.values = entry_values(graph, D2, "D2 must have one element per entry of the graph");
            require(P.shape(0) == D2.shape(0), "P must have the length of D2");
            require(std::int64_t(saturated.shape(0)) == graph.rows, "saturated must have shape (n,)");
            keep_apart(graph, P, saturated);
            eq::ReleaseGil release;
            ops<R>().conditional(D, as_perplexities(perplexities), P.data(), saturated.data(), threads);
        },
        "graph"_a, array("D2"), array("perplexities"), array("P"), array("saturated"), "threads"_a,
        "p_{j|i} of the entries of a graph of squared distances.");
}

template <class R> void bind_memberships(nb::module_ &m) {
    m.def(
        "memberships",
        [](const eq::Csr &graph, Vector<double> D2, double target, double floor, OutVector<R> W, int threads) {
            const double *values = entry_values(graph, D2, "D2 must have one element per entry of the graph");
            require(W.shape(0) == D2.shape(0), "W must have the length of D2");
            keep_apart(graph, W);
            eq::ReleaseGil release;
            ops<R>().memberships(graph, values, target, floor, W.data(), threads);
        },
        "graph"_a, array("D2"), "target"_a, "floor"_a, array("W"), "threads"_a,
        "exp(-max(0, r - ρ_i) / σ_i) of the entries of a graph of squared distances, with the same sum in every row.");
}

}  // namespace

void bind_affinity(nb::module_ &m) {
    bind_conditional<float>(m);
    bind_conditional<double>(m);
    bind_memberships<float>(m);
    bind_memberships<double>(m);
}
