// Bindings of the mesh: spreading, convolution, interpolation, and the near field.
#include <cmath>

#include "bind/common.hpp"

namespace {

constexpr std::int64_t MOST_NODES = std::int64_t(1) << 40;  // of a mesh
constexpr std::int64_t MOST_CELLS = std::int64_t(1) << 28;  // of the near field, which stores a number for each

eq::Mesh make_mesh(const Vector<double> &origin, double h, const Vector<std::int64_t> &size) {
    require(origin.shape(0) >= 1 && origin.shape(0) <= 3 && size.shape(0) == origin.shape(0),
            "origin and size must have one element for each of 1 to 3 axes");
    eq::Mesh mesh;
    mesh.d = int(origin.shape(0));
    mesh.inverse_h = 1 / h;
    require(h > 0 && std::isfinite(h) && std::isfinite(mesh.inverse_h), "h must be positive and finite");
    std::int64_t nodes = 1;
    for (int c = 0; c < mesh.d; ++c) {
        mesh.origin[c] = origin.data()[c];
        mesh.size[c] = size.data()[c];
        require(std::isfinite(mesh.origin[c]), "origin must be finite");
        require(mesh.size[c] >= 1 && mesh.size[c] <= MOST_NODES / nodes,
                "a mesh must have at least one node along each axis, and at most 2^40 in all");
        nodes *= mesh.size[c];
    }
    return mesh;
}

// The grid is flat: m meshes, and MESH_PADDING elements that the last spline may read and write, with weight 0.
template <class R> void check_mesh(const eq::Mesh &mesh, const Matrix<R> &Y, std::size_t m, std::size_t elements) {
    require(Y.shape(1) == std::size_t(mesh.d), "Y must have one column per axis of the mesh");
    for (int c = 0; c < mesh.d; ++c)
        require(mesh.size[c] >= eq::MESH_ORDER && mesh.size[c] <= (sizeof(R) == sizeof(float) ? 1 << 24 : 1 << 30),
                "a mesh must have from MESH_ORDER to 2^24 nodes along each axis, 2^30 in float64");
    require(m <= MOST_DIMENSIONS, "there must be at most 65536 charges per point");
    require(elements == m * std::size_t(mesh.nodes()) + eq::MESH_PADDING,
            "grid must have m * nodes + MESH_PADDING elements");
}

template <class R> void check_frequencies(const eq::Mesh &mesh, const In<R, nb::shape<-1, -1, -1>> &frequencies) {
    const std::int64_t last = mesh.size[mesh.d - 1], lines = eq::VECTOR_BYTES / std::int64_t(sizeof(R));
    std::int64_t others = 1;
    for (int c = 0; c < mesh.d; ++c) {
        std::int64_t rest = mesh.size[c];
        for (const int factor : {2, 3, 5})
            while (rest > 1 && rest % factor == 0) rest /= factor;
        require(rest == 1, "the number of nodes along an axis must have no prime factor above 5");
        if (c < mesh.d - 1) others *= 2 * mesh.size[c];
    }
    require(std::int64_t(frequencies.shape(0)) == (last + lines) / lines &&
                std::int64_t(frequencies.shape(1)) == others && std::int64_t(frequencies.shape(2)) == lines,
            "frequencies must have shape (groups of the last axis, frequencies of the other axes, group size)");
}

template <class R> void bind_grid(nb::module_ &m) {
    m.def(
        "spread",
        [](const eq::Mesh &mesh, Matrix<R> Y, Matrix<double> charges, OutVector<R> grid, int threads) {
            check_mesh<R>(mesh, Y, charges.shape(1), grid.shape(0));
            require(charges.shape(0) == Y.shape(0), "charges must have shape (n, m) for Y (n, d)");
            eq::ReleaseGil release;
            ops<R>().spread(mesh, points(Y), as_charges(charges), grid.data(), threads);
        },
        "mesh"_a, array("Y"), array("charges"), array("grid"), "threads"_a,
        "Spread charges (n, m) to the nodes of the mesh: the flat array (m, nodes) is followed by MESH_PADDING"
        " elements.");
    m.def(
        "gather",
        [](const eq::Mesh &mesh, Matrix<R> Y, Vector<R> grid, OutMatrix<double> potential, OutCube half_gradient,
           int threads) {
            const std::size_t m = potential.shape(1);
            check_mesh<R>(mesh, Y, m, grid.shape(0));
            const auto out = field_sums(Y.shape(0), m, Y.shape(1), potential, half_gradient);
            eq::ReleaseGil release;
            ops<R>().gather(mesh, points(Y), grid.data(), int(m), out, threads);
        },
        "mesh"_a, array("Y"), array("grid"), array("potential"), array("half_gradient"), "threads"_a,
        "Interpolate Φ (n, m) and ½∇Φ (n, m, d) from a potential on the mesh: the flat array (m, nodes) is followed"
        " by MESH_PADDING elements.");
    m.def(
        "convolve",
        [](const eq::Mesh &mesh, In<R, nb::shape<-1, -1, -1>> frequencies, OutMatrix<R> grid, int threads) {
            check_frequencies<R>(mesh, frequencies);
            require(std::int64_t(grid.shape(1)) == mesh.nodes() && grid.shape(0) <= MOST_DIMENSIONS,
                    "grid must have shape (m, nodes)");
            eq::ReleaseGil release;
            ops<R>().convolve(mesh, frequencies.data(), int(grid.shape(0)), grid.data(), threads);
        },
        "mesh"_a, array("frequencies"), array("grid"), "threads"_a,
        "Convolve grids (m, nodes) in place with a kernel given at its frequencies.");
    m.def(
        "near",
        [](const eq::Mesh &cells, Segments segments, int first, float scale, Matrix<R> targets, Matrix<R> Y,
           Matrix<double> charges, OutMatrix<double> potential, OutCube half_gradient, int threads) {
            require(Y.shape(1) == std::size_t(cells.d), "Y must have one column per axis of the cells");
            require(targets.shape(1) == Y.shape(1), "targets must have shape (n_targets, d) for Y (n, d)");
            require(charges.shape(0) == Y.shape(0), "charges must have shape (n, m) for Y (n, d)");
            const auto out = field_sums(targets.shape(0), charges.shape(1), Y.shape(1), potential, half_gradient);
            const eq::Table table = make_table(segments, first, scale);
            require(cells.nodes() <= MOST_CELLS, "the near field must have at most 2^28 cells");
            const bool same = targets.data() == Y.data() && targets.shape(0) == Y.shape(0);
            const eq::Points<R> at = same ? eq::Points<R>() : points(targets);
            eq::ReleaseGil release;
            ops<R>().near(cells, table, at, points(Y), as_charges(charges), out, threads);
        },
        "cells"_a, array("segments"), "first"_a, "scale"_a, array("targets"), array("Y"), array("charges"),
        array("potential"), array("half_gradient"), "threads"_a,
        "Add the pairs closer than one cell to Φ and ½∇Φ at the targets. If targets is Y, pairs of a point with itself"
        " are left out.");
}

}  // namespace

void bind_mesh(nb::module_ &m) {
    nb::class_<eq::Mesh>(m, "Mesh", "A regular grid in 1 to 3 dimensions.")
        .def(
            "__init__",
            [](eq::Mesh *mesh, Vector<double> origin, double h, Vector<std::int64_t> size) {
                new (mesh) eq::Mesh(make_mesh(origin, h, size));
            },
            "origin"_a, "h"_a, "size"_a);
    bind_grid<float>(m);
    bind_grid<double>(m);
}
