// Bindings of the mesh: spreading, convolution, gathering, and the near field.
#include "bind/common.hpp"

namespace {

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

}  // namespace

void bind_mesh(nb::module_ &m) {
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
    bind_grid<float>(m);
    bind_grid<double>(m);
}
