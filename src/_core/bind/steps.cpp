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

void bind_sums(nb::module_ &m) {
    m.def(
        "center",
        [](Matrix<float> U, OutMatrix<float> out, int threads) {
            require(out.shape(0) == U.shape(0) && out.shape(1) == U.shape(1), "out must have the shape of U, (n, d)");
            const eq::Points<float> rows = points(U);
            eq::ReleaseGil release;
            backend().center(rows, out.data(), threads);
        },
        array("U"), array("out"), "threads"_a, "Write U (n, d) minus its mean row to `out`, which may be U.");
    m.def(
        "total",
        [](Vector<double> x, int threads) {
            eq::ReleaseGil release;
            return backend().sum_all(x.data(), std::int64_t(x.shape(0)), threads);
        },
        array("x"), "threads"_a, "Σ x, in an order that does not depend on the number of threads.");
}

// The arrays of a step of negative sampling, checked.
struct Sampling {
    eq::Weights edges;
    const float *degrees;
    float *due;
    eq::Points<float> Y;
    float *out;
    Sampling(const eq::Csr &graph, const Vector<float> &period, const Vector<float> &degrees_,
             const OutVector<float> &due_, const Matrix<float> &Y_, const OutMatrix<float> &out_, int count)
        : edges(graph, entry_values(graph, period, "period must have one element per edge")), degrees(degrees_.data()),
          due(due_.data()), Y(points(Y_)), out(out_.data()) {
        const std::size_t n = Y_.shape(0);
        require(std::int64_t(due_.shape(0)) == graph.entries(), "due must have one element per edge");
        require(std::size_t(graph.rows) == n && std::size_t(graph.columns) == n,
                "the graph must have shape (n, n) for Y (n, d)");
        require(degrees_.shape(0) == n, "degrees must have shape (n,)");
        require(out_.shape(0) == n && out_.shape(1) == Y_.shape(1), "out must have the shape of Y, (n, d)");
        require(!Bytes(out_).overlaps(Bytes(Y_)), "out must not share memory with Y");
        require(count >= 0 && count <= 65536, "count must be from 0 to 65536");
        keep_apart(graph, due_, out_);
    }
};

// One table of the repulsion, and one of the attraction for each level of the affinity, all of the same form.
eq::PairTables pair_tables(const eq::Csr &graph, const Segments &pull, const Segments &push, int first, float scale,
                           const Vector<std::uint8_t> &level) {
    const eq::Table repulsion = make_table(push, first, scale);
    const std::size_t size = push.shape(0), levels = pull.shape(0) / size;
    require(levels >= 1 && levels <= 256 && levels * size == pull.shape(0),
            "pull must have as many rows as push, or up to 256 times as many");
    eq::Table attraction = repulsion;
    attraction.segments = pull.data();
    const std::uint8_t *of_edge = entry_values(graph, level, "level must have one element per edge");
    return {attraction, repulsion, of_edge, int(levels)};
}

void bind_negatives(nb::module_ &m) {
    m.def(
        "negatives_step",
        [](const eq::Csr &graph, Vector<float> period, Vector<float> degrees, OutVector<float> due, Matrix<float> Y,
           OutMatrix<float> out, double a, double b, double epsilon, double clip, double rate, double exaggeration,
           double until, int count, std::uint64_t seed, std::int64_t step, int threads) {
            const Sampling s(graph, period, degrees, due, Y, out, count);
            const eq::Negatives negatives{clip, rate, exaggeration, until, count, seed, step};
            eq::ReleaseGil release;
            backend().negatives_step(negatives, {a, b, epsilon}, s.edges, s.degrees, s.due, s.Y, s.out, threads);
        },
        "graph"_a, array("period"), array("degrees"), array("due"), array("Y"), array("out"), "a"_a, "b"_a, "epsilon"_a,
        "clip"_a, "rate"_a, "exaggeration"_a, "until"_a, "count"_a, "seed"_a, "step"_a, "threads"_a,
        "One step with the edges due before `until`, each with `count` negatives, for k = 1 / (1 + a d2^b).");
    m.def(
        "sampled_pairs_step",
        [](const eq::Csr &graph, Vector<float> period, Vector<float> degrees, OutVector<float> due, Matrix<float> Y,
           OutMatrix<float> out, Segments pull, Segments push, int first, float scale, Vector<std::uint8_t> level,
           double clip, double rate, double exaggeration, double until, int count, std::uint64_t seed,
           std::int64_t step, int threads) {
            const Sampling s(graph, period, degrees, due, Y, out, count);
            const eq::PairTables tables = pair_tables(graph, pull, push, first, scale, level);
            const Bytes inputs[] = {Bytes(pull), Bytes(push), Bytes(level)};
            for (const Bytes &input : inputs)
                require(!input.overlaps(Bytes(out)) && !input.overlaps(Bytes(due)),
                        "outputs must not share memory with tables");
            const eq::Negatives negatives{clip, rate, exaggeration, until, count, seed, step};
            eq::ReleaseGil release;
            backend().sampled_pairs_step(negatives, tables, s.edges, s.degrees, s.due, s.Y, s.out, threads);
        },
        "graph"_a, array("period"), array("degrees"), array("due"), array("Y"), array("out"), array("pull"),
        array("push"), "first"_a, "scale"_a, array("level"), "clip"_a, "rate"_a, "exaggeration"_a, "until"_a, "count"_a,
        "seed"_a, "step"_a, "threads"_a,
        "One step as `negatives_step`, for forces that are slopes of tables; `level` chooses one of those in `pull`.");
}

}  // namespace

void bind_steps(nb::module_ &m) {
    bind_momentum_step<float>(m);
    bind_momentum_step<double>(m);
    bind_sums(m);
    bind_negatives(m);
}
