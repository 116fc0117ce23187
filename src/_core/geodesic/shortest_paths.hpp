// Shortest paths in a graph, from one point to all others (Dijkstra 1959), with a heap that has four children per node.
// Each source is computed by one thread, so results do not depend on their number.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "threads/parallel.hpp"
#include "types.hpp"

namespace eq {

// The graph stores both directions of every edge, possibly more than once; lengths are not negative.
class ShortestPaths {
public:
    ShortestPaths(const Csr &graph_, const double *lengths_)
        : graph(graph_), lengths(lengths_), place(std::size_t(graph_.rows)) {
        heap.reserve(std::size_t(graph.rows));  // a point is in the heap at most once, so that it never grows
    }

    // Fills d (n) with the lengths of the shortest paths from `source`; infinity if there is none. Does not allocate.
    void from(std::int64_t source, double *d) {
        std::fill(d, d + graph.rows, std::numeric_limits<double>::infinity());
        std::fill(place.begin(), place.end(), UNSEEN);
        d[source] = 0.0;
        heap.push_back({});
        rise(0, {0.0, std::int32_t(source)});
        while (!heap.empty()) {
            const std::int32_t i = pop();
            const double here = d[i];
            for (std::int64_t t = graph.indptr[i]; t < graph.indptr[i + 1]; ++t) {
                const std::int32_t j = graph.indices[t];
                const double there = here + lengths[t];
                if (!(there < d[j])) continue;
                d[j] = there;
                if (place[std::size_t(j)] == UNSEEN) heap.push_back({});
                rise(place[std::size_t(j)] == UNSEEN ? std::int32_t(heap.size()) - 1 : place[std::size_t(j)],
                     {there, j});
            }
        }
    }

private:
    struct Reached {
        double distance;
        std::int32_t point;
    };
    static constexpr std::int32_t UNSEEN = -1;
    const Csr graph;
    const double *const lengths;
    std::vector<Reached> heap;        // points reached but not yet final, the nearest first
    std::vector<std::int32_t> place;  // the position of each point in the heap

    void put(std::int32_t at, const Reached &reached) {
        heap[std::size_t(at)] = reached;
        place[std::size_t(reached.point)] = at;
    }

    void rise(std::int32_t at, const Reached &reached) {
        while (at > 0) {
            const std::int32_t up = (at - 1) / 4;
            if (!(reached.distance < heap[std::size_t(up)].distance)) break;
            put(at, heap[std::size_t(up)]);
            at = up;
        }
        put(at, reached);
    }

    std::int32_t pop() {
        const std::int32_t nearest = heap.front().point;
        const Reached last = heap.back();
        heap.pop_back();
        const std::int32_t size = std::int32_t(heap.size());
        if (size == 0) return nearest;
        std::int32_t at = 0;
        for (std::int32_t child = 1; child < size; child = 4 * at + 1) {
            std::int32_t best = child;
            for (std::int32_t c = child + 1; c < std::min(child + 4, size); ++c)
                if (heap[std::size_t(c)].distance < heap[std::size_t(best)].distance) best = c;
            if (!(heap[std::size_t(best)].distance < last.distance)) break;
            put(at, heap[std::size_t(best)]);
            at = best;
        }
        put(at, last);
        return nearest;
    }
};

// Distances (count, n) from some points to all.
inline void shortest_paths(const Csr &graph, const double *lengths, const std::int64_t *sources, std::int64_t count,
                           double *distances, int threads) {
    std::vector<ShortestPaths> solvers;
    solvers.reserve(std::size_t(slots(threads)));
    for (int t = 0; t < slots(threads); ++t) solvers.emplace_back(graph, lengths);
    parallel_for(count, 1, threads, [&](std::int64_t first, std::int64_t last, int slot) {
        for (std::int64_t i = first; i < last; ++i)
            solvers[std::size_t(slot)].from(sources[i], distances + i * graph.rows);
    });
}

}  // namespace eq
