// Bindings of optimiser steps.
#include "bind/common.hpp"

namespace {

template <class R> void bind_momentum_step(nb::module_ &m) {
    m.def(
        "momentum_step",
        [](Matrix<double> gradient, OutMatrix<R> velocity, OutMatrix<R> gain, double rate, double momentum,
           double gain_up, double gain_down, double turned, double min_gain, double max_step) {
            const std::size_t n = gradient.shape(0), d = gradient.shape(1);
            require(velocity.shape(0) == n && velocity.shape(1) == d && gain.shape(0) == n && gain.shape(1) == d,
                    "velocity and gain must have the shape of the gradient, (n, d)");
            check_rows(n, d, MOST_DIMENSIONS);
            const eq::Step step{rate, momentum, gain_up, gain_down, turned, min_gain, max_step};
            eq::ReleaseGil release;
            ops<R>().momentum_step(step, gradient.data(), std::int64_t(n), int(d), velocity.data(), gain.data());
        },
        array("gradient"), array("velocity"), array("gain"), "rate"_a, "momentum"_a, "gain_up"_a, "gain_down"_a,
        "turned"_a, "min_gain"_a, "max_step"_a,
        "v ← momentum · v − rate · gain · gradient in place, after updating the gains; steps are at most max_step "
        "long.");
}

}  // namespace

void bind_steps(nb::module_ &m) {
    bind_momentum_step<float>(m);
    bind_momentum_step<double>(m);
    m.def(
        "negatives_step",
        [](const eq::Csr &graph, Vector<float> period, Vector<float> degrees, OutVector<float> due, Matrix<float> Y,
           OutMatrix<float> out, double a, double b, double epsilon, double clip, double rate, double exaggeration,
           double until, int count, std::uint64_t seed, std::int64_t step, int threads) {
            const std::size_t n = Y.shape(0);
            const eq::Weights edges(graph, entry_values(graph, period, "period must have one element per edge"));
            require(std::int64_t(due.shape(0)) == graph.entries(), "due must have one element per edge");
            require(std::size_t(graph.rows) == n && std::size_t(graph.columns) == n,
                    "the graph must have shape (n, n) for Y (n, d)");
            require(degrees.shape(0) == n, "degrees must have shape (n,)");
            require(out.shape(0) == n && out.shape(1) == Y.shape(1), "out must have the shape of Y, (n, d)");
            require(!Bytes(out).overlaps(Bytes(Y)), "out must not share memory with Y");
            require(count >= 0 && count <= 65536, "count must be from 0 to 65536");
            keep_apart(graph, due, out);
            const eq::Negatives negatives{a, b, epsilon, clip, rate, exaggeration, until, count, seed, step};
            eq::ReleaseGil release;
            backend().negatives_step(negatives, edges, degrees.data(), due.data(), points(Y), out.data(), threads);
        },
        "graph"_a, array("period"), array("degrees"), array("due"), array("Y"), array("out"), "a"_a, "b"_a, "epsilon"_a,
        "clip"_a, "rate"_a, "exaggeration"_a, "until"_a, "count"_a, "seed"_a, "step"_a, "threads"_a,
        "One step with the edges due before `until`, each with `count` negatives, for k = 1 / (1 + a d2^b).");
}
