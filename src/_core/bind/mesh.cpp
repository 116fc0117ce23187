// Bindings of the mesh: spreading, convolution, interpolation, the near field, and whole optimiser steps.
#include <cmath>
#include <vector>

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

template <class R> void check_axes(const eq::Mesh &mesh) {
    for (int c = 0; c < mesh.d; ++c)
        require(mesh.size[c] >= eq::MESH_ORDER && mesh.size[c] <= (sizeof(R) == sizeof(float) ? 1 << 24 : 1 << 30),
                "a mesh must have from MESH_ORDER to 2^24 nodes along each axis, 2^30 in float64");
}

// The grid is flat: m meshes, and MESH_PADDING elements that the last spline may read and write, with weight 0.
template <class R> void check_mesh(const eq::Mesh &mesh, const Matrix<R> &Y, std::size_t m, std::size_t elements) {
    require(Y.shape(1) == std::size_t(mesh.d), "Y must have one column per axis of the mesh");
    check_axes<R>(mesh);
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

// The sources of a near field, checked and sorted into cells once, with the table of the kernel.
template <class R> class NearField {
public:
    NearField(const eq::Mesh &cells, const eq::Table &table, const Matrix<R> &Y, const Matrix<double> &charges,
              int threads)
        : table_(table) {
        require(Y.shape(1) == std::size_t(cells.d), "Y must have one column per axis of the cells");
        require(charges.shape(0) == Y.shape(0), "charges must have shape (n, m) for Y (n, d)");
        require(charges.shape(1) <= MOST_DIMENSIONS, "there must be at most 65536 charges per point");
        require(cells.nodes() <= MOST_CELLS, "the near field must have at most 2^28 cells");
        const eq::Points<R> sources = points(Y);
        const eq::Charges given = as_charges(charges);
        const std::int64_t stride = sources.n + eq::CELL_PADDING;
        eq::ReleaseGil release;
        start_.resize(std::size_t(cells.nodes() + 1));
        order_.resize(std::size_t(sources.n));
        axes_.resize(std::size_t(stride * cells.d));
        charges_.resize(std::size_t(stride * given.m));
        lists_ = {cells,         sources.n,     stride,       given.m,
                  start_.data(), order_.data(), axes_.data(), charges_.data()};
        ops<R>().sort_into_cells(sources, given, lists_, threads);
    }

    void add(const Matrix<R> &targets, const OutMatrix<double> &potential, const OutCube &half_gradient,
             int threads) const {
        require(targets.shape(1) == std::size_t(lists_.mesh.d), "targets must have one column per axis of the cells");
        const auto out =
            field_sums(targets.shape(0), std::size_t(lists_.m), targets.shape(1), potential, half_gradient);
        const eq::Points<R> at = points(targets);
        eq::ReleaseGil release;
        if (at.n > 0) ops<R>().near_at(lists_, table_, at, out, threads);
    }

private:
    eq::Table table_;
    eq::CellLists<R> lists_;
    std::vector<std::int64_t> start_;
    std::vector<std::int32_t> order_;
    std::vector<R> axes_, charges_;
};

template <class R> void bind_near_field(nb::module_ &m, const char *name) {
    nb::class_<NearField<R>>(m, name, "Points with charges, sorted into cells once, for `near_at`.")
        .def(
            "__init__",
            [](NearField<R> *self, const eq::Mesh &cells, Segments segments, int first, float scale, Matrix<R> Y,
               Matrix<double> charges, int threads) {
                new (self) NearField<R>(cells, make_table(segments, first, scale), Y, charges, threads);
            },
            "cells"_a, array("segments"), "first"_a, "scale"_a, array("Y"), array("charges"), "threads"_a,
            nb::keep_alive<1, 3>());
    m.def(
        "near_at",
        [](const NearField<R> &field, Matrix<R> targets, OutMatrix<double> potential, OutCube half_gradient,
           int threads) { field.add(targets, potential, half_gradient, threads); },
        "field"_a, array("targets"), array("potential"), array("half_gradient"), "threads"_a,
        "Add the pairs closer than one cell to Φ and ½∇Φ at the targets, as `near` does for other targets than Y.");
}

// A kernel on a mesh; its arrays are kept alive by the object in Python.
template <class R> void bind_mesh_kernel(nb::module_ &m, const char *name) {
    nb::class_<eq::MeshKernel<R>>(m, name, "A kernel on a mesh for `mesh_steps`: its frequencies and its near part.")
        .def(
            "__init__",
            [](eq::MeshKernel<R> *self, double h, Vector<std::int64_t> size,
               In<R, nb::shape<-1, -1, -1>> frequencies, double shift, double at_zero, double radius,
               Segments segments, int first, float scale) {
                const double zeros[3] = {0, 0, 0};
                require(size.shape(0) >= 1 && size.shape(0) <= 3, "size must have 1 to 3 elements");
                const std::size_t shape[1] = {size.shape(0)};
                const Vector<double> origin(Vector<double>::Base(zeros, 1, shape));
                eq::MeshKernel<R> kernel;
                kernel.mesh = make_mesh(origin, h, size);
                check_axes<R>(kernel.mesh);
                check_frequencies<R>(kernel.mesh, frequencies);
                require(radius >= 0 && std::isfinite(radius), "radius must be 0 or positive, and finite");
                kernel.h = h;
                kernel.frequencies = frequencies.data();
                kernel.shift = shift;
                kernel.at_zero = at_zero;
                kernel.radius = radius;
                if (radius > 0) kernel.near = make_table(segments, first, scale);
                new (self) eq::MeshKernel<R>(kernel);
            },
            "h"_a, "size"_a, array("frequencies"), "shift"_a, "at_zero"_a, "radius"_a, array("segments"), "first"_a,
            "scale"_a, nb::keep_alive<1, 4>(), nb::keep_alive<1, 8>());
}

// The limits of the sides of a map, checked: inside them, the sizes of the near field do not overflow.
void set_limits(eq::MeshSteps &steps, int d, double radius, const Vector<double> &lower, const Vector<double> &upper) {
    require(lower.shape(0) == std::size_t(d) && upper.shape(0) == std::size_t(d),
            "lower and upper must have one element per column of U");
    double cells = 1;
    for (int c = 0; c < d; ++c) {
        steps.lower[c] = lower(c);
        steps.upper[c] = upper(c);
        require(steps.lower[c] >= 0 && std::isfinite(steps.upper[c]), "lower must be at least 0, and upper finite");
        if (radius > 0) cells *= steps.upper[c] / radius + 1;
    }
    require(cells <= double(MOST_CELLS), "the near field must have at most 2^28 cells");
}

template <class R> void bind_mesh_steps(nb::module_ &m) {
    m.def(
        "mesh_steps",
        [](const eq::MeshKernel<R> &kernel, const eq::Kernel &edges, const eq::Csr &A, Vector<float> values,
           double pull, double push, Matrix<double> charges, double rate, double gain_up, double gain_down,
           double turned, double min_gain, double max_step, Vector<double> momentum, Vector<double> lower,
           Vector<double> upper, double thin, double tiny, double narrow, double seconds, OutMatrix<float> U,
           OutMatrix<float> velocity, OutMatrix<float> gain, int threads) {
            const std::size_t n = U.shape(0), d = U.shape(1);
            check_rows(n, d, MOST_DIMENSIONS);
            require(n >= 1 && d == std::size_t(kernel.mesh.d), "U must have rows, and one column per axis of the mesh");
            require(velocity.shape(0) == n && velocity.shape(1) == d && gain.shape(0) == n && gain.shape(1) == d,
                    "velocity and gain must have the shape of U, (n, d)");
            require(!Bytes(U).overlaps(Bytes(velocity)) && !Bytes(U).overlaps(Bytes(gain)) &&
                        !Bytes(velocity).overlaps(Bytes(gain)),
                    "U, velocity and gain must not share memory");
            require(A.rows == std::int64_t(n) && A.columns == A.rows, "A must have shape (n, n) for U (n, d)");
            keep_apart(A, U, velocity, gain);
            eq::MeshSteps steps;
            steps.kernel = edges;
            steps.A = eq::Weights(A, entry_values(A, values, "values must have one element per entry of A"));
            steps.pull = pull;
            steps.push = push;
            require(charges.shape(0) == 0 || (charges.shape(0) == n && charges.shape(1) == 2),
                    "charges must have no rows, or shape (n, 2) for U (n, d)");
            if (charges.shape(0) > 0) steps.charges = charges.data();
            steps.step = {rate, 0, gain_up, gain_down, turned, min_gain, max_step};
            steps.momentum = momentum.data();
            steps.count = std::int64_t(momentum.shape(0));
            steps.thin = thin;
            steps.tiny = tiny;
            steps.narrow = narrow;
            steps.seconds = seconds;
            set_limits(steps, int(d), kernel.radius, lower, upper);
            const eq::MovingMap map{std::int64_t(n), int(d), U.data(), velocity.data(), gain.data()};
            eq::ReleaseGil release;
            return ops<R>().mesh_steps(steps, kernel, map, threads);
        },
        "kernel"_a, "edges"_a, "A"_a, array("values"), "pull"_a, "push"_a, array("charges"), "rate"_a, "gain_up"_a,
        "gain_down"_a, "turned"_a, "min_gain"_a, "max_step"_a, array("momentum"), array("lower"), array("upper"),
        "thin"_a, "tiny"_a, "narrow"_a, "seconds"_a, array("U"), array("velocity"), array("gain"), "threads"_a,
        "Take up to len(momentum) steps in place along the force pull · E + (push / Z) ∇Φ or, with charges (n, 2), 1 and"
        " s, along pull · E + push (s ∇Φ[1] + ∇Φ[s]), and return their number. The map is centred after each. Steps end"
        " early before one for which a side of the box around the map is not between `lower` and `upper`, the widest is"
        " below `narrow`, Z is not positive, or `seconds` have passed.");
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
    bind_near_field<float>(m, "NearField32");
    bind_near_field<double>(m, "NearField64");
    bind_mesh_kernel<float>(m, "MeshKernel32");
    bind_mesh_kernel<double>(m, "MeshKernel64");
    bind_mesh_steps<float>(m);
    bind_mesh_steps<double>(m);
}
