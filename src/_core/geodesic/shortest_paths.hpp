// Shortest paths from one point to all in a graph of lengths (Dijkstra 1959), with a heap of four children to a node.
// Each source is one thread's, so the number of threads never changes a byte.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace eq {

// Edges as CSR: both directions of each are stored, perhaps more than once; lengths are not negative.
struct Roads {
    std::int64_t n;
    const std::int64_t *indptr;
    const std::int32_t *indices;
    const double *lengths;
};

class Paths {
public:
    explicit Paths(const Roads &roads) : roads(roads), place(std::size_t(roads.n)) { heap.reserve(std::size_t(roads.n)); }

    // Fills d (n) with the lengths of the shortest paths from `source`; infinity where there is none.
    void from(std::int64_t source, double *d) {
        std::fill(d, d + roads.n, std::numeric_limits<double>::infinity());
        std::fill(place.begin(), place.end(), UNSEEN);
        d[source] = 0.0;
        heap.push_back({});
        rise(0, {0.0, std::int32_t(source)});
        while (!heap.empty()) {
            const std::int32_t i = pop();
            const double here = d[i];
            for (std::int64_t t = roads.indptr[i]; t < roads.indptr[i + 1]; ++t) {
                const std::int32_t j = roads.indices[t];
                const double there = here + roads.lengths[t];
                if (!(there < d[j])) continue;
                d[j] = there;
                if (place[std::size_t(j)] == UNSEEN) heap.push_back({});
                rise(place[std::size_t(j)] == UNSEEN ? std::int32_t(heap.size()) - 1 : place[std::size_t(j)], {there, j});
            }
        }
    }

private:
    struct Reached {
        double distance;
        std::int32_t point;
    };
    static constexpr std::int32_t UNSEEN = -1;
    Roads roads;
    std::vector<Reached> heap;        // points reached and not yet left, the nearest first
    std::vector<std::int32_t> place;  // of each point in the heap

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

}  // namespace eq
