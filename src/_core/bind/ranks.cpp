// Bindings of the parts of an iteration that one of several processes makes for its own points.
#include "bind/common.hpp"

namespace {

template <class R> void bind_spread_integers(nb::module_ &m) {
    m.def(
        "spread_integers",
        [](const eq::Mesh &mesh, Matrix<R> Y, Matrix<double> charges, double unit, OutVector<std::int64_t> grid,
           int threads) {
            require(Y.shape(1) == std::size_t(mesh.d), "Y must have one column per axis of the mesh");
            require(charges.shape(0) == Y.shape(0) && charges.shape(1) <= MOST_DIMENSIONS,
                    "charges must have shape (n, m) for Y (n, d), with m at most 65536");
            for (int c = 0; c < mesh.d; ++c)
                require(mesh.size[c] >= eq::MESH_ORDER && mesh.size[c] <= (1 << 24),
                        "a mesh of integers must have from MESH_ORDER to 2^24 nodes along each axis");
            require(grid.shape(0) == charges.shape(1) * std::size_t(mesh.nodes()) + eq::MESH_PADDING,
                    "grid must have m * nodes + MESH_PADDING elements");
            const eq::Points<R> rows = points(Y);
            eq::ReleaseGil release;
            ops<R>().spread_integers(mesh, rows, as_charges(charges), unit, grid.data(), threads);
        },
        "mesh"_a, array("Y"), array("charges"), "unit"_a, array("grid"), "threads"_a,
        "Spread charges (n, m), times `unit` and rounded, to the nodes of the mesh: the flat array (m, nodes) of"
        " integers is followed by MESH_PADDING elements.");
}

std::size_t step_blocks(std::size_t n) { return (n + eq::STEP_BLOCK - 1) / eq::STEP_BLOCK; }

}  // namespace

void bind_ranks(nb::module_ &m) {
    m.attr("STEP_BLOCK") = eq::STEP_BLOCK;
    bind_spread_integers<float>(m);
    bind_spread_integers<double>(m);
    m.def(
        "move_rows",
        [](Matrix<double> edges, Matrix<double> half_gradient, double pull, double push, double rate, double momentum,
           double gain_up, double gain_down, double turned, double min_gain, double max_step, OutMatrix<float> U,
           OutMatrix<float> velocity, OutMatrix<float> gain, OutMatrix<double> sums, int threads) {
            const std::size_t n = U.shape(0), d = U.shape(1);
            check_rows(n, d, MOST_DIMENSIONS);
            const auto like_U = [&](const auto &x) { return x.shape(0) == n && x.shape(1) == d; };
            require(like_U(edges) && like_U(half_gradient) && like_U(velocity) && like_U(gain),
                    "edges, half_gradient, velocity and gain must have the shape of U, (n, d)");
            require(sums.shape(0) == step_blocks(n) && sums.shape(1) == d, "sums must have shape (blocks of U, d)");
            require(!Bytes(U).overlaps(Bytes(velocity)) && !Bytes(U).overlaps(Bytes(gain)) &&
                        !Bytes(velocity).overlaps(Bytes(gain)) && !Bytes(sums).overlaps(Bytes(U)) &&
                        !Bytes(sums).overlaps(Bytes(velocity)) && !Bytes(sums).overlaps(Bytes(gain)),
                    "U, velocity, gain and sums must not share memory");
            const eq::Step step{rate, momentum, gain_up, gain_down, turned, min_gain, max_step};
            const eq::MovingMap map{std::int64_t(n), int(d), U.data(), velocity.data(), gain.data()};
            eq::ReleaseGil release;
            backend().move_rows(step, pull, push, edges.data(), half_gradient.data(), map, sums.data(), threads);
        },
        array("edges"), array("half_gradient"), "pull"_a, "push"_a, "rate"_a, "momentum"_a, "gain_up"_a, "gain_down"_a,
        "turned"_a, "min_gain"_a, "max_step"_a, array("U"), array("velocity"), array("gain"), array("sums"),
        "threads"_a,
        "One step in place along the force pull · E + push ∇Φ, and the sums of the new positions in blocks of"
        " STEP_BLOCK points.");
    m.def(
        "shift_rows",
        [](Vector<float> row, OutMatrix<float> U, Out<float, nb::shape<-1, 2, -1>> boxes, int threads) {
            const std::size_t n = U.shape(0), d = U.shape(1);
            check_rows(n, d, MOST_DIMENSIONS);
            require(row.shape(0) == d, "row must have one element per column of U");
            require(boxes.shape(0) == step_blocks(n) && boxes.shape(2) == d,
                    "boxes must have shape (blocks of U, 2, d)");
            require(!Bytes(U).overlaps(Bytes(boxes)) && !Bytes(U).overlaps(Bytes(row)) &&
                        !Bytes(boxes).overlaps(Bytes(row)),
                    "row, U and boxes must not share memory");
            eq::ReleaseGil release;
            backend().shift_rows(row.data(), std::int64_t(n), int(d), U.data(), boxes.data(), threads);
        },
        array("row"), array("U"), array("boxes"), "threads"_a,
        "Subtract a row from U (n, d) in place, and find the lower and upper corners of blocks of STEP_BLOCK points.");
    m.def(
        "block_sums",
        [](Matrix<double> x, OutMatrix<double> sums, int threads) {
            const std::size_t n = x.shape(0), m = x.shape(1);
            check_rows(n, m, MOST_DIMENSIONS);
            require(sums.shape(0) == step_blocks(n) && sums.shape(1) == m, "sums must have shape (blocks of x, m)");
            require(!Bytes(x).overlaps(Bytes(sums)), "x and sums must not share memory");
            eq::ReleaseGil release;
            backend().block_sums(x.data(), std::int64_t(n), int(m), sums.data(), threads);
        },
        array("x"), array("sums"), "threads"_a, "Sums of the rows of x (n, m) in blocks of STEP_BLOCK rows.");
}
