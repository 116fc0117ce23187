// Bindings of what metric spaces need: exact geodesics of a mesh, the triangle inequality of a matrix.
#include "bind/common.hpp"
#include "geodesic/detour.hpp"
#include "geodesic/surface.hpp"

void bind_spaces(nb::module_ &m) {
    m.def(
        "mesh_geodesics",
        [](In<std::int32_t, nb::shape<-1, 3>> faces, In<double, nb::shape<-1, 3>> lengths,
           In<std::int32_t, nb::shape<-1, 3>> twins, In<std::uint8_t, nb::shape<-1>> bends,
           In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> leaving,
           In<std::int32_t, nb::shape<-1>> sources, Out<double, nb::shape<-1, -1>> distances, int threads) {
            const std::size_t m = faces.shape(0), n = bends.shape(0), count = sources.shape(0);
            if (lengths.shape(0) != m || twins.shape(0) != m || leaving.shape(0) != 3 * m || indptr.shape(0) != n + 1 ||
                distances.shape(0) != count || distances.shape(1) != n)
                throw nb::value_error("the arrays of the mesh do not fit together");
            const eq::Surface surface{std::int64_t(n), faces.data(),  lengths.data(), twins.data(),
                                      bends.data(),    indptr.data(), leaving.data()};
            nb::gil_scoped_release release;
#pragma omp parallel num_threads(threads)
            {
                eq::Geodesics geodesics(surface);
#pragma omp for schedule(dynamic)
                for (std::int64_t i = 0; i < std::int64_t(count); ++i)
                    geodesics.from(sources.data()[i], distances.data() + i * std::int64_t(n));
            }
        },
        "faces"_a.noconvert(), "lengths"_a.noconvert(), "twins"_a.noconvert(), "bends"_a.noconvert(),
        "indptr"_a.noconvert(), "leaving"_a.noconvert(), "sources"_a.noconvert(), "distances"_a.noconvert(), "threads"_a,
        "Exact distances from vertices to all on a triangle mesh, given by the lengths of its half-edges.");
    m.def(
        "longest_excess",
        [](In<double, nb::shape<-1, -1>> D, Out<double, nb::shape<-1>> excess, Out<std::int64_t, nb::shape<-1>> where,
           int threads) {
            const std::size_t n = D.shape(0);
            if (D.shape(1) != n || excess.shape(0) != n || where.shape(0) != n)
                throw nb::value_error("D must be square, with one entry of the outputs per row");
            nb::gil_scoped_release release;
            eq::longest_excess(D.data(), std::int64_t(n), excess.data(), where.data(), threads);
        },
        "D"_a.noconvert(), "excess"_a.noconvert(), "where"_a.noconvert(), "threads"_a,
        "Per row x, the largest d(x, y) - min_z (d(x, z) + d(z, y)) and its y.");
}
