// Bindings of geodesics: on triangulated surfaces and in graphs; and of the triangle inequality.
#include "bind/common.hpp"
#include "geodesic/detour.hpp"
#include "geodesic/shortest_paths.hpp"
#include "geodesic/surface.hpp"

namespace {

void check_surface(const In<std::int32_t, nb::shape<-1, 3>> &faces, const In<std::int32_t, nb::shape<-1, 3>> &twins,
                   const eq::Csr &leaving) {
    const std::size_t half_edges = 3 * faces.shape(0);
    for (std::size_t h = 0; h < half_edges; ++h) {
        require(faces.data()[h] >= 0 && faces.data()[h] < leaving.rows, "faces must list vertices from 0 to n - 1");
        require(twins.data()[h] >= -1 && twins.data()[h] < std::int64_t(half_edges),
                "twins must be half-edges, or -1 at a boundary");
    }
}

}  // namespace

void bind_geodesic(nb::module_ &m) {
    m.def(
        "surface_geodesics",
        [](In<std::int32_t, nb::shape<-1, 3>> faces, In<double, nb::shape<-1, 3>> lengths,
           In<std::int32_t, nb::shape<-1, 3>> twins, Vector<std::uint8_t> bends, const eq::Csr &leaving,
           Vector<std::int32_t> sources, OutMatrix<double> distances, int threads) {
            const std::size_t m = faces.shape(0), n = bends.shape(0), count = sources.shape(0);
            require(lengths.shape(0) == m && twins.shape(0) == m,
                    "lengths and twins must have the shape of faces, (m, 3)");
            require(std::size_t(leaving.rows) == n && std::size_t(leaving.columns) == 3 * m &&
                        std::size_t(leaving.entries()) == 3 * m,
                    "leaving must list each of the 3 m half-edges at one of the n vertices");
            check_surface(faces, twins, leaving);
            for (std::size_t i = 0; i < count; ++i)
                require(sources(i) >= 0 && std::size_t(sources(i)) < n, "sources must be vertices from 0 to n - 1");
            require(distances.shape(0) == count && distances.shape(1) == n, "distances must have shape (n_sources, n)");
            const eq::Surface surface{std::int64_t(n), faces.data(),   lengths.data(), twins.data(),
                                      bends.data(),    leaving.indptr, leaving.indices};
            nb::gil_scoped_release release;
            eq::surface_distances(surface, sources.data(), std::int64_t(count), distances.data(), threads);
        },
        array("faces"), array("lengths"), array("twins"), array("bends"), "leaving"_a, array("sources"),
        array("distances"), "threads"_a,
        "Exact distances from some vertices to all on a triangulated surface, given the lengths of its half-edges.");
    m.def(
        "shortest_paths",
        [](const eq::Csr &graph, Vector<double> lengths, Vector<std::int64_t> sources, OutMatrix<double> distances,
           int threads) {
            const double *values = entry_values(graph, lengths, "lengths must have one element per edge");
            const std::size_t n = std::size_t(graph.rows), count = sources.shape(0);
            require(graph.columns == graph.rows, "the graph must be square");
            for (std::size_t t = 0; t < lengths.shape(0); ++t)
                require(values[t] >= 0, "lengths of edges must not be negative or NaN");
            for (std::size_t i = 0; i < count; ++i)
                require(sources(i) >= 0 && std::size_t(sources(i)) < n, "sources must be points from 0 to n - 1");
            require(distances.shape(0) == count && distances.shape(1) == n, "distances must have shape (n_sources, n)");
            nb::gil_scoped_release release;
            eq::shortest_paths(graph, values, sources.data(), std::int64_t(count), distances.data(), threads);
        },
        "graph"_a, array("lengths"), array("sources"), array("distances"), "threads"_a,
        "Lengths of the shortest paths from some points to all, in a graph that stores both directions of every edge.");
    m.def(
        "longest_excess",
        [](Matrix<double> D, OutVector<double> excess, OutVector<std::int64_t> argmax, int threads) {
            const std::size_t n = D.shape(0);
            require(D.shape(1) == n, "D must be square");
            require(excess.shape(0) == n && argmax.shape(0) == n, "excess and argmax must have shape (n,)");
            nb::gil_scoped_release release;
            eq::longest_excess(D.data(), std::int64_t(n), excess.data(), argmax.data(), threads);
        },
        array("D"), array("excess"), array("argmax"), "threads"_a,
        "For each row x, the largest d(x, y) - min_z (d(x, z) + d(z, y)), and the y where it occurs.");
}
