// Exact geodesic distances on a triangulated surface: straight lines are unfolded from face to face, as windows on the
// edges, nearest first (Chen & Han 1990, with the queue and the filters of Xin & Wang 2009); docs/math.md section 18.
// Only the lengths of the edges matter. Each source is computed by one thread, so results do not depend on their
// number.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <stdexcept>
#include <vector>

#include "threads/parallel.hpp"

namespace eq {

// Half-edge h = 3 f + k of face f goes from its vertex k to vertex k + 1. In its own frame it starts at the origin and
// lies on the positive x axis, and the third vertex of its face, the apex, is above.
struct Surface {
    std::int64_t n;
    const std::int32_t *faces;  // (m, 3)
    const double *lengths;      // (m, 3), of the half-edges
    const std::int32_t *twins;  // (m, 3): the half-edge of the other face, or -1 at a boundary
    const std::uint8_t
        *bends;  // (n): whether a shortest path may bend at the vertex: total angle above 2π, or a boundary
    const std::int64_t *indptr;  // (n + 1), with `leaving` (3 m): the half-edges that start at each vertex
    const std::int32_t *leaving;
};

struct Point {
    double x, y;
};

inline double distance(Point p, Point q) { return std::hypot(p.x - q.x, p.y - q.y); }

inline std::int32_t next(std::int32_t h) { return h % 3 == 2 ? h - 2 : h + 1; }

inline Point apex(const Surface &S, std::int32_t h) {
    const double L = S.lengths[h], far = S.lengths[next(h)], near = S.lengths[next(next(h))];
    const double x = 0.5 * (L + (near - far) * (near + far) / L);
    return {x, std::sqrt(std::max(0.0, (near - x) * (near + x)))};
}

// The part [from, to] of half-edge h that is lit from the point `light` below it. `behind` is the distance from the
// source to `light`, along a path that last bent at vertex `bend`. h < 0 means that the vertex `bend` is a new light.
struct Window {
    double key;  // a lower bound for the distance of its points from the source
    std::int32_t h, bend;
    double from, to, behind;
    Point light;
    bool operator<(const Window &other) const { return key > other.key; }
};

class Geodesics {
public:
    explicit Geodesics(const Surface &surface)
        : S(surface), best(std::size_t(surface.indptr[surface.n])), best_at(best.size()) {}

    // The distances (n) from one vertex to all. Only the queue allocates: the number of windows has no useful bound, so
    // it cannot be sized in advance, and std::bad_alloc may be thrown.
    void from(std::int32_t source, double *distances) {
        d = distances;
        std::fill(d, d + S.n, infinite);
        std::fill(best.begin(), best.end(), infinite);
        std::fill(best_at.begin(), best_at.end(), 0.0);
        d[source] = 0;
        shine(source);
        // With the rule "one angle, one split", the number of windows is at most a multiple of the squared number of
        // half-edges (Chen & Han 1990). Where rounding breaks the rule, as in very thin faces, `left` ends the loop.
        double left = 1000 + 16.0 * double(best.size()) * double(best.size());
        while (!queue.empty()) {
            if (--left < 0) {
                queue = {};
                throw std::invalid_argument("the faces are too thin for exact distances");
            }
            const Window w = queue.top();
            queue.pop();
            if (w.behind > d[w.bend]) continue;  // a shorter path to the light was found in the meantime
            if (w.h < 0) shine(w.bend);
            else cross(w);
        }
    }

private:
    static constexpr double infinite = std::numeric_limits<double>::infinity();
    static constexpr double slack =
        1e-9;  // relative to the edge: a vertex this close to the end of a window counts as lit
    static constexpr double thin =
        1e-12;  // relative to the edge: narrower windows are dropped; the slack of their neighbours covers them
    static constexpr double keep = 1 - 1e-12;  // so that rounding drops no window

    void reach(std::int32_t vertex, double length) {
        if (!(length < d[vertex])) return;
        d[vertex] = length;
        if (S.bends[vertex]) queue.push({length, -1, vertex, 0, 0, length, {0, 0}});
    }

    // Light from a vertex in all directions: along the edges that start there, and through the adjacent faces.
    void shine(std::int32_t v) {
        for (std::int64_t t = S.indptr[v]; t < S.indptr[v + 1]; ++t) {
            const std::int32_t h = S.leaving[t], opposite = next(h);
            reach(S.faces[opposite], d[v] + S.lengths[h]);
            reach(S.faces[next(opposite)], d[v] + S.lengths[next(opposite)]);
        }
        for (std::int64_t t = S.indptr[v]; t < S.indptr[v + 1]; ++t) {
            const std::int32_t opposite = next(S.leaving[t]);
            leave(opposite, 0, S.lengths[opposite], apex(S, opposite), d[v], v);
        }
    }

    // Light from `light`, above half-edge h, leaves the face through h and becomes a window of the next face.
    void leave(std::int32_t h, double from, double to, Point light, double behind, std::int32_t bend) {
        const std::int32_t twin = S.twins[h];
        const double L = S.lengths[h];
        from = std::max(from, 0.0);
        to = std::min(to, L);
        if (twin < 0 || !(to - from > thin * L) || !(light.y > 0)) return;
        light.y = -light.y;
        if (S.faces[twin] != S.faces[h]) {  // the twin has the opposite direction, as in an oriented surface
            light.x = L - light.x;
            std::swap(from, to);
            from = L - from;
            to = L - to;
        }
        // Xin & Wang 2009, section 3.3: a path through an end of the edge is shorter for the whole window.
        const double to_from = behind + distance(light, {from, 0}), to_to = behind + distance(light, {to, 0});
        if (d[S.faces[twin]] + to < to_to * keep || d[S.faces[next(twin)]] + (L - from) < to_from * keep) return;
        const double x = std::min(std::max(light.x, from), to);
        queue.push({behind + distance(light, {x, 0}), twin, bend, from, to, behind, light});
    }

    // Propagate a window through the face of its half-edge.
    void cross(const Window &w) {
        const double L = S.lengths[w.h];
        const std::int32_t right = next(w.h), left = next(right);
        const Point a{0, 0}, b{L, 0}, c = apex(S, w.h), s = w.light;
        const double at = s.x + (c.x - s.x) * (-s.y) / (c.y - s.y);  // where the ray to the apex crosses the half-edge
        bool go_left = at > w.from, go_right = at < w.to;
        if (at >= w.from - slack * L && at <= w.to + slack * L) {
            const double length = w.behind + distance(s, c);
            reach(S.faces[left], length);
            double &shortest = best[std::size_t(w.h)], &shortest_at = best_at[std::size_t(w.h)];
            const bool same_ray = std::abs(at - shortest_at) <= slack * L, again = same_ray && length * keep < shortest;
            // One angle, one split: only the nearest light, and the next window of the same light, pass on both sides.
            // If a nearer light is on the same ray, it is a vertex at an end of this window, and rounding decides on
            // which side of the vertex the ray passes: the side that is wider than rounding passes on.
            if (go_left && go_right && !again && length >= shortest) {
                const bool is_right = same_ray ? at - w.from > w.to - at : at < shortest_at;
                (is_right ? go_right : go_left) = false;
            }
            if (length < shortest) {
                shortest = length;
                shortest_at = at;
            }
        }
        if (go_right) side(w, right, b, c, std::max(at, w.from), w.to);
        if (go_left) side(w, left, c, a, w.from, std::min(at, w.to));
    }

    // The rays that enter between `low` and `high` leave through half-edge h, from p to q in the frame of the window.
    void side(const Window &w, std::int32_t h, Point p, Point q, double low, double high) {
        const double L = S.lengths[h];
        const Point u{(q.x - p.x) / L, (q.y - p.y) / L};
        const auto frame = [&](Point r) {
            return Point{(r.x - p.x) * u.x + (r.y - p.y) * u.y, (r.y - p.y) * u.x - (r.x - p.x) * u.y};
        };
        const Point light = frame(w.light);
        const auto hit = [&](double t) {
            const Point e = frame({t, 0});
            return light.x + (e.x - light.x) * light.y / (light.y - e.y);
        };
        const double from = hit(high), to = hit(low);
        // The filter of leave() once more: a path through the end of the entry edge that is not on h.
        const bool right = h == next(w.h);
        const std::int32_t beside = S.faces[right ? w.h : next(w.h)];
        const Point corner = frame(right ? Point{0, 0} : Point{S.lengths[w.h], 0}), end{right ? from : to, 0};
        if (d[beside] + distance(corner, end) < (w.behind + distance(light, end)) * keep) return;
        leave(h, from, to, light, w.behind, w.bend);
    }

    const Surface S;
    double *d = nullptr;
    std::vector<double> best,
        best_at;  // per half-edge: the shortest path through it to its apex, and where that crosses it
    std::priority_queue<Window> queue;
};

// Distances (count, n) from some vertices to all.
inline void surface_distances(const Surface &surface, const std::int32_t *sources, std::int64_t count,
                              double *distances, int threads) {
    const auto used = std::size_t(std::max<std::int64_t>(1, std::min<std::int64_t>(slots(threads), count)));
    std::vector<Geodesics> solvers(used, Geodesics(surface));
    parallel_for(count, 1, int(used), [&](std::int64_t first, std::int64_t last, int slot) {
        for (std::int64_t i = first; i < last; ++i)
            solvers[std::size_t(slot)].from(sources[i], distances + i * surface.n);
    });
}

}  // namespace eq
