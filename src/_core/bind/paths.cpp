// Binding of shortest paths in a graph.
#include "bind/common.hpp"
#include "geodesic/shortest_paths.hpp"

void bind_paths(nb::module_ &m) {
    m.def(
        "shortest_paths",
        [](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
           In<double, nb::shape<-1>> lengths, In<std::int64_t, nb::shape<-1>> sources,
           Out<double, nb::shape<-1, -1>> distances, int threads) {
            const std::int64_t n = std::int64_t(indptr.shape(0)) - 1, entries = std::int64_t(lengths.shape(0));
            const std::int64_t count = std::int64_t(sources.shape(0));
            if (n < 1 || std::int64_t(indices.shape(0)) != entries || indptr.data()[n] != entries ||
                std::int64_t(distances.shape(0)) != count || std::int64_t(distances.shape(1)) != n)
                throw nb::value_error("the arrays of the graph do not fit together");
            for (std::int64_t t = 0; t < entries; ++t)
                if (indices.data()[t] < 0 || indices.data()[t] >= n || !(lengths.data()[t] >= 0))
                    throw nb::value_error("an edge leads nowhere or has no length");
            for (std::int64_t i = 0; i < n; ++i)
                if (indptr.data()[i] < 0 || indptr.data()[i] > indptr.data()[i + 1])
                    throw nb::value_error("indptr must rise from 0");
            for (std::int64_t i = 0; i < count; ++i)
                if (sources.data()[i] < 0 || sources.data()[i] >= n) throw nb::value_error("a source is out of range");
            const eq::Roads roads{n, indptr.data(), indices.data(), lengths.data()};
            nb::gil_scoped_release release;
#pragma omp parallel num_threads(threads)
            {
                eq::Paths paths(roads);
#pragma omp for schedule(dynamic)
                for (std::int64_t i = 0; i < count; ++i) paths.from(sources.data()[i], distances.data() + i * n);
            }
        },
        "indptr"_a.noconvert(), "indices"_a.noconvert(), "lengths"_a.noconvert(), "sources"_a.noconvert(),
        "distances"_a.noconvert(), "threads"_a,
        "Lengths of the shortest paths from some points to all, in a graph with both directions of every edge.");
}
