// Bindings of geodesics: on triangulated surfaces and in graphs; and of the triangle inequality.
#include "bind/common.hpp"
#include "geodesic/detour.hpp"
#include "geodesic/shortest_paths.hpp"
#include "geodesic/surface.hpp"

namespace {

// Checks that the half-edges form a surface. Otherwise windows would be propagated for ever, or outside the arrays.
void check_surface(const eq::Surface &S, std::int64_t half_edges) {
    const auto end_of = [&](std::int64_t h) { return S.faces[eq::next(std::int32_t(h))]; };
    for (std::int64_t h = 0; h < half_edges; ++h) {
        require(S.faces[h] >= 0 && S.faces[h] < S.n, "faces must list vertices from 0 to n - 1");
        require(S.twins[h] >= -1 && S.twins[h] < half_edges, "twins must be half-edges, or -1 at a boundary");
        require(S.lengths[h] > 0 && S.lengths[h] <= std::numeric_limits<double>::max(),
                "lengths must be positive and finite");
    }
    for (std::int64_t h = 0; h < half_edges; ++h) {
        const std::int32_t right = eq::next(std::int32_t(h)), left = eq::next(right);
        require(S.lengths[h] < S.lengths[right] + S.lengths[left],
                "an edge of a face must be shorter than the other two together");
        const std::int32_t twin = S.twins[h];
        if (twin < 0) continue;
        require(S.twins[twin] == h && twin != h, "the twin of a half-edge must have that half-edge as its twin");
        require((S.faces[twin] == S.faces[h] && end_of(twin) == end_of(h)) ||
                    (S.faces[twin] == end_of(h) && end_of(twin) == S.faces[h]),
                "twins must connect the same two vertices");
        require(S.lengths[twin] == S.lengths[h], "twins must have the same length");
    }
    for (std::int64_t v = 0; v < S.n; ++v)
        for (std::int64_t t = S.indptr[v]; t < S.indptr[v + 1]; ++t)
            require(S.faces[S.leaving[t]] == v, "leaving must list the half-edges that start at each vertex");
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
            require(m <= MOST_POINTS / 3, "there must be fewer than 2^31 half-edges");
            for (std::size_t i = 0; i < count; ++i)
                require(sources(i) >= 0 && std::size_t(sources(i)) < n, "sources must be vertices from 0 to n - 1");
            require(distances.shape(0) == count && distances.shape(1) == n, "distances must have shape (n_sources, n)");
            const eq::Surface surface{std::int64_t(n), faces.data(),   lengths.data(), twins.data(),
                                      bends.data(),    leaving.indptr, leaving.indices};
            check_surface(surface, 3 * std::int64_t(m));
            keep_apart(leaving, distances);
            keep_apart(faces, distances);
            keep_apart(twins, distances);
            keep_apart(sources, distances);
            eq::ReleaseGil release;
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
            keep_apart(graph, distances);
            keep_apart(sources, distances);
            keep_apart(lengths, distances);  // the checks above must remain true
            eq::ReleaseGil release;
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
            eq::ReleaseGil release;
            eq::longest_excess(D.data(), std::int64_t(n), excess.data(), argmax.data(), threads);
        },
        array("D"), array("excess"), array("argmax"), "threads"_a,
        "For each row x, the largest d(x, y) - min_z (d(x, z) + d(z, y)), and the y where it occurs.");
}
