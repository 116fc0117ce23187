// Bindings of edges and fields in curved spaces.
#include <cmath>

#include "bind/common.hpp"

namespace {

void bind_space(nb::module_ &m) {
    using Kind = eq::Space::Kind;
    nb::class_<eq::Space>(m, "Space", "A curved space of maps.")
        .def_prop_ro(
            "hyperbolic", [](const eq::Space &space) { return space.kind == Kind::hyperbolic; },
            "Whether this is the hyperbolic plane.")
        .def_static(
            "torus",
            [](Vector<double> period) {
                for (std::size_t c = 0; c < period.shape(0); ++c)
                    require(period(c) > 0 && std::isfinite(period(c)), "periods must be positive and finite");
                eq::Space space;
                space.kind = Kind::torus;
                space.period = period.data();
                space.dimension = int(period.shape(0));
                return space;
            },
            array("period"), nb::keep_alive<0, 1>(), "The flat torus with a period per axis.")
        .def_static(
            "hyperbolic_plane",
            [](double radius) {
                require(radius > 0 && std::isfinite(radius), "radius must be positive and finite");
                eq::Space space;
                space.kind = Kind::hyperbolic;
                space.radius = radius;
                space.dimension = 2;
                return space;
            },
            "radius"_a, "The plane of curvature -1/radius², in normal coordinates.");
}

// Targets that are the points themselves are passed as no targets.
template <class R>
eq::Points<R> check_targets(const eq::Space &space, const Matrix<R> &targets, const Matrix<R> &Y) {
    require(Y.shape(1) == std::size_t(space.dimension), "Y must have one column per dimension of the space");
    require(targets.shape(1) == Y.shape(1), "targets must have shape (n_targets, d) for Y (n, d)");
    const bool same = targets.data() == Y.data() && targets.shape(0) == Y.shape(0);
    return same ? eq::Points<R>() : points(targets);
}

// R is the type of the map and T that of the weights.
template <class R, class T> void bind_curved_edges(nb::module_ &m) {
    m.def(
        "curved_edges_dense",
        [](const eq::Space &space, const eq::Kernel &kernel, double b, Matrix<T> A, Matrix<R> Y,
           OutVector<double> potential, OutMatrix<double> force, int threads) {
            require(A.shape(0) == Y.shape(0) && A.shape(1) == Y.shape(0), "A must have shape (n, n) for Y (n, d)");
            const eq::Points<R> at = check_targets(space, Y, Y);
            const eq::EdgeSums out = edge_sums(Y.shape(0), Y.shape(1), potential, force);
            eq::ReleaseGil release;
            ops<R>().curved_edges(space, kernel, b, eq::Weights(A.data()), at, points(Y), out, threads);
        },
        "space"_a, "kernel"_a, "b"_a, array("A"), array("Y"), array("potential"), array("force"), "threads"_a,
        "Ψ (n,) and E (n, d) of all pairs in a curved space, with dense A (n, n). An empty `potential` skips Ψ.");
    m.def(
        "curved_edges_sparse",
        [](const eq::Space &space, const eq::Kernel &kernel, double b, const eq::Csr &A, Vector<T> values,
           Matrix<R> targets, Matrix<R> Y, OutVector<double> potential, OutMatrix<double> force, int threads) {
            const eq::Weights weights(A, entry_values(A, values, "values must have one element per entry of A"));
            require(A.rows == std::int64_t(targets.shape(0)) && A.columns == std::int64_t(Y.shape(0)),
                    "A must have shape (n_targets, n) for targets (n_targets, d) and Y (n, d)");
            const eq::Points<R> at = check_targets(space, targets, Y);
            const eq::EdgeSums out = edge_sums(targets.shape(0), Y.shape(1), potential, force);
            keep_apart(A, potential, force);
            eq::ReleaseGil release;
            ops<R>().curved_edges(space, kernel, b, weights, at, points(Y), out, threads);
        },
        "space"_a, "kernel"_a, "b"_a, "A"_a, array("values"), array("targets"), array("Y"), array("potential"),
        array("force"), "threads"_a,
        "Ψ (n_targets,) and E (n_targets, d) of the stored pairs of A (n_targets, n) in a curved space. An empty"
        " `potential` skips Ψ.");
}

template <class R> void bind_curved_field(nb::module_ &m) {
    m.def(
        "curved_field",
        [](const eq::Space &space, const eq::Kernel &kernel, Matrix<double> charges, Matrix<R> targets, Matrix<R> Y,
           OutMatrix<double> potential, OutCube half_gradient, int threads) {
            require(charges.shape(0) == Y.shape(0), "charges must have shape (n, m) for Y (n, d)");
            const eq::Points<R> at = check_targets(space, targets, Y);
            const auto out = field_sums(targets.shape(0), charges.shape(1), Y.shape(1), potential, half_gradient);
            eq::ReleaseGil release;
            ops<R>().curved_field(space, kernel, as_charges(charges), at, points(Y), out, threads);
        },
        "space"_a, "kernel"_a, array("charges"), array("targets"), array("Y"), array("potential"),
        array("half_gradient"), "threads"_a,
        "Φ and ½∇Φ of all points Y at targets (n_targets, d) in a curved space. If targets is Y, each point is left out"
        " of its own sum.");
}

void bind_polar_near(nb::module_ &m) {
    m.def(
        "polar_near",
        [](const eq::Space &space, Segments segments, int first, float scale, double reach, Matrix<float> targets,
           Matrix<float> Y, Matrix<double> charges, OutMatrix<double> potential, OutCube half_gradient, int threads) {
            require(space.kind == eq::Space::Kind::hyperbolic && Y.shape(1) == 2 && targets.shape(1) == 2,
                    "targets and Y must have two columns, in the hyperbolic plane");
            require(charges.shape(0) == Y.shape(0), "charges must have shape (n, m) for Y (n, 2)");
            require(reach > 0 && std::isfinite(reach), "reach must be positive and finite");
            const eq::Points<float> at = check_targets(space, targets, Y);
            const auto out = field_sums(targets.shape(0), charges.shape(1), 2, potential, half_gradient);
            const eq::Table table = make_table(segments, first, scale);
            eq::ReleaseGil release;
            backend().polar_near(space, table, reach, at, points(Y), as_charges(charges), out, threads);
        },
        "space"_a, array("segments"), "first"_a, "scale"_a, "reach"_a, array("targets"), array("Y"), array("charges"),
        array("potential"), array("half_gradient"), "threads"_a,
        "Add the pairs of the hyperbolic plane closer than `reach` to Φ and ½∇Φ at the targets. A point at a target"
        " contributes too.");
}

eq::PolarMesh polar_mesh(double h, double angles, double centre) {
    require(h > 0 && std::isfinite(h), "h must be positive and finite");
    require(angles > 0 && std::isfinite(angles), "angles must be positive and finite");
    require(centre > 0, "centre must be positive");
    return {h, angles, centre};
}

template <class R> void bind_polar_points(nb::module_ &m) {
    m.def(
        "polar_nodes",
        [](double h, double angles, Matrix<R> Y, OutMatrix<R> out, int threads) {
            const eq::PolarMesh mesh = polar_mesh(h, angles, h);
            require(Y.shape(1) == 2 && out.shape(1) == 2 && out.shape(0) == Y.shape(0),
                    "Y and out must have shape (n, 2)");
            eq::ReleaseGil release;
            ops<R>().polar_nodes(mesh, points(Y), out.data(), threads);
        },
        "h"_a, "angles"_a, array("Y"), array("out"), "threads"_a,
        "Write the positions of points (n, 2) on a polar mesh: distances from the origin over h, and angles in"
        " [0, angles].");
    m.def(
        "polar_gradient",
        [](double h, double angles, double centre, Matrix<R> Y, OutCube gradient, int threads) {
            const eq::PolarMesh mesh = polar_mesh(h, angles, centre);
            require(Y.shape(1) == 2 && gradient.shape(2) == 2 && gradient.shape(0) == Y.shape(0),
                    "gradient must have shape (n, m, 2) for Y (n, 2)");
            require(gradient.shape(1) <= MOST_DIMENSIONS, "there must be at most 65536 charges");
            eq::ReleaseGil release;
            ops<R>().polar_gradient(mesh, points(Y), int(gradient.shape(1)), gradient.data(), threads);
        },
        "h"_a, "angles"_a, "centre"_a, array("Y"), array("gradient"), "threads"_a,
        "Turn gradients (n, m, 2) per node of a polar mesh, along the radius and the angle, into those in normal"
        " coordinates, in place. Nearer to the origin than `centre`, they are those at this distance.");
}

template <class R> void bind_hyperbolic_steps(nb::module_ &m) {
    m.def(
        "hyperbolic_tangent",
        [](double radius, Matrix<R> U, Matrix<double> F, OutMatrix<double> out, int threads) {
            require(radius > 0 && std::isfinite(radius), "radius must be positive and finite");
            require(U.shape(1) == 2 && F.shape(1) == 2 && out.shape(1) == 2 && F.shape(0) == U.shape(0) &&
                        out.shape(0) == U.shape(0),
                    "U, F and out must have shape (n, 2)");
            eq::ReleaseGil release;
            ops<R>().hyperbolic_tangent(radius, points(U), F.data(), out.data(), threads);
        },
        "radius"_a, array("U"), array("F"), array("out"), "threads"_a,
        "Write forces (n, 2) in normal coordinates as vectors in the orthonormal frame to `out`, which may be F.");
    m.def(
        "hyperbolic_move",
        [](double radius, Matrix<R> step, OutMatrix<R> Y, OutMatrix<R> velocity, int threads) {
            require(radius > 0 && std::isfinite(radius), "radius must be positive and finite");
            require(step.shape(1) == 2 && Y.shape(1) == 2 && velocity.shape(1) == 2 && Y.shape(0) == step.shape(0) &&
                        velocity.shape(0) == step.shape(0),
                    "step, Y and velocity must have shape (n, 2)");
            eq::ReleaseGil release;
            ops<R>().hyperbolic_move(radius, points(step), Y.data(), velocity.data(), threads);
        },
        "radius"_a, array("step"), array("Y"), array("velocity"), "threads"_a,
        "Move points (n, 2) of the hyperbolic plane along geodesics, with their velocities, in place.");
    m.def(
        "hyperbolic_translate",
        [](double radius, double c0, double c1, OutMatrix<R> Y, OutMatrix<R> velocity, int threads) {
            require(radius > 0 && std::isfinite(radius), "radius must be positive and finite");
            require(Y.shape(1) == 2 && velocity.shape(1) == 2 && velocity.shape(0) == Y.shape(0),
                    "Y and velocity must have shape (n, 2)");
            eq::ReleaseGil release;
            ops<R>().hyperbolic_translate(radius, c0, c1, std::int64_t(Y.shape(0)), Y.data(), velocity.data(), threads);
        },
        "radius"_a, "c0"_a, "c1"_a, array("Y"), array("velocity"), "threads"_a,
        "Move points (n, 2) by the isometry that takes the point (c0, c1) to the origin, with their velocities, in"
        " place.");
}

}  // namespace

void bind_curved(nb::module_ &m) {
    bind_space(m);
    bind_curved_edges<float, float>(m);
    bind_curved_edges<float, double>(m);
    bind_curved_edges<double, float>(m);
    bind_curved_edges<double, double>(m);
    bind_curved_field<float>(m);
    bind_curved_field<double>(m);
    bind_polar_near(m);
    bind_polar_points<float>(m);
    bind_polar_points<double>(m);
    bind_hyperbolic_steps<float>(m);
    bind_hyperbolic_steps<double>(m);
}
