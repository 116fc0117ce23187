// One step of stochastic gradient descent with negative sampling: sampled edges attract, and for each of them a few
// random points repel (docs/math.md, section 16). Forces on a point use its own current position, but the positions of
// all others before the step. So points are independent, and results do not depend on the number of threads.
#pragma once
#include "primitives/table.hpp"
#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int CROWD = 32;  // points that a thread moves together, with the same negatives

// The finaliser of splitmix64 (Steele, Lea & Flood 2014): a counter in, random bits out.
EQ_INLINE std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// The forces of UMAP: for k = 1 / (1 + a d2^b), the attraction 2 k'/k and the repulsion -2 k'/(1 - k), softened.
struct MembershipLaw {
    float a, b, epsilon;

    EQ_INLINE void pull(int lanes, const float *d2, const std::uint8_t *, float exaggeration, float *strength) const {
        const float factor = -2.0f * b * exaggeration;
        for (int q = 0; q < lanes; ++q) {
            const float r = clamp_below(d2[q], 1e-30f), t = a * exp(b * log(r));
            strength[q] = factor * t / (r * (1.0f + t));
        }
    }
    EQ_INLINE void push(int lanes, const float *d2, float *strength) const {
        for (int q = 0; q < lanes; ++q) {
            const float r = clamp_below(d2[q], 1e-30f), t = a * exp(b * log(r));
            strength[q] = 2.0f * b / ((epsilon + r) * (1.0f + t));
        }
    }
    EQ_INLINE std::uint8_t level(std::int64_t) const { return 0; }
};

// The forces of any loss of pairs, from tables whose slopes are half the force per difference of positions: one table
// of the repulsion, and one of the attraction for each level of the affinity.
struct TabulatedLaw {
    PairTables t;

    EQ_INLINE float slope(const Table &table, std::int64_t skipped, float d2) const {
        const Place<float, std::int32_t> at(table, d2);
        return slope_in(table.segments + 4 * (skipped + at.segment), at.f);
    }
    EQ_INLINE void pull(int lanes, const float *d2, const std::uint8_t *level, float exaggeration,
                        float *strength) const {
        for (int q = 0; q < lanes; ++q)
            strength[q] = -2.0f * exaggeration * slope(t.pull, std::int64_t(level[q]) * t.pull.size, d2[q]);
    }
    EQ_INLINE void push(int lanes, const float *d2, float *strength) const {
        for (int q = 0; q < lanes; ++q) strength[q] = 2.0f * slope(t.push, 0, d2[q]);
    }
    EQ_INLINE std::uint8_t level(std::int64_t e) const {
        return t.level[e] < t.levels ? t.level[e] : std::uint8_t(t.levels - 1);
    }
};

// A crowd of consecutive points, each with its edges that are due. In each round, every point with an edge left is
// attracted along it and repelled by the negatives of the round, which the crowd shares. All loops run over its points.
template <class Law> struct Crowd {
    const Negatives &s;
    const Law &law;
    const Weights &graph;
    const float *degrees, *Y;
    std::int64_t n, longest;
    int d;
    int count = 0, who[CROWD];  // the points by their number of due edges, descending
    std::int64_t found[CROWD];
    Buffer<std::int64_t> edges;        // (CROWD, longest): the edges that are due
    Buffer<float> y, diff, sum;        // (d, CROWD)
    alignas(32) float inverse[CROWD];  // 1 / degree
    std::uint8_t level[CROWD] = {};    // of the edges of the round

    Crowd(const Negatives &step, const Law &law_, const Weights &graph_, const float *degrees_, Points<float> points,
          std::int64_t longest_)
        : s(step), law(law_), graph(graph_), degrees(degrees_), Y(points.data), n(points.n), longest(longest_),
          d(points.d), edges(CROWD * longest), y(std::int64_t(d) * CROWD), diff(std::int64_t(d) * CROWD),
          sum(std::int64_t(d) * CROWD) {}

    void start(std::int64_t first, float *due) {
        const float until = float(s.until);
        count = 0;
        for (std::int64_t i = first; i < n && count < CROWD; ++i, ++count) {
            std::int64_t *list = edges.data + count * longest, m = 0;
            for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
                list[m] = e;
                m += due[e] < until;  // no branch: it would be mispredicted at every third edge
            }
            for (std::int64_t f = 0; f < m; ++f) due[list[f]] += graph.f32[list[f]];
            found[count] = m;
            int place = count;
            for (; place > 0 && found[who[place - 1]] < m; --place) who[place] = who[place - 1];
            who[place] = count;
        }
        for (int q = 0; q < count; ++q) inverse[q] = 1.0f / degrees[first + who[q]];
        for (int q = 0; q < count; ++q)
            for (int c = 0; c < d; ++c) y[c * CROWD + q] = Y[(first + who[q]) * d + c];
    }

    // Adds clipped moves along each axis to `sum`: the attraction of an edge, twice, since it acts at both ends; or the
    // repulsion by a negative of this degree, together with the expected moves of the point when others draw it.
    template <int D> EQ_INLINE void add(int lanes, bool pull, float degree) {
        const int dimension = D > 0 ? D : d;
        const float clip = float(s.clip);
        const float *__restrict x = diff.data;
        float *__restrict total = sum.data;
        alignas(32) float d2[CROWD], strength[CROWD];
        for (int q = 0; q < lanes; ++q) d2[q] = x[q] * x[q];
        for (int c = 1; c < dimension; ++c)
            for (int q = 0; q < lanes; ++q) d2[q] += x[c * CROWD + q] * x[c * CROWD + q];
        if (pull) law.pull(lanes, d2, level, float(s.exaggeration), strength);
        else law.push(lanes, d2, strength);
        alignas(32) float times[CROWD];
        for (int q = 0; q < lanes; ++q) times[q] = pull ? 2.0f : 1.0f + degree * inverse[q];
        for (int c = 0; c < dimension; ++c)
            for (int q = 0; q < lanes; ++q) {
                const float f = times[q] * strength[q] * x[c * CROWD + q], low = f > -clip ? f : -clip;
                total[c * CROWD + q] += low < clip ? low : clip;
            }
    }

    template <int D> void run(std::int64_t first) {
        const int dimension = D > 0 ? D : d;
        const std::uint64_t key =
            mix(mix(s.seed + 0x9E3779B97F4A7C15u * (std::uint64_t(s.step) + 1)) + std::uint64_t(first));
        std::uint64_t counter = 0;
        int moved = count;
        for (std::int64_t r = 0;; ++r) {
            while (moved > 0 && found[who[moved - 1]] <= r) --moved;
            if (moved == 0) return;
            const int lanes = (moved + 7) / 8 * 8;
            for (int q = 0; q < moved; ++q) {
                const std::int64_t edge = edges[who[q] * longest + r];
                const float *other = Y + std::int64_t(graph.indices[edge]) * dimension;
                level[q] = law.level(edge);
                for (int c = 0; c < dimension; ++c) diff[c * CROWD + q] = y[c * CROWD + q] - other[c];
            }
            for (int c = 0; c < dimension; ++c)
                for (int q = 0; q < lanes; ++q) sum[c * CROWD + q] = 0;
            add<D>(lanes, true, 0.0f);
            for (int t = 0; t < s.count; ++t) {
                const std::uint64_t word = mix(key + 0x9E3779B97F4A7C15u * ++counter) >> 32;
                const std::int64_t drawn = std::int64_t((word * std::uint64_t(n)) >> 32);
                const float *other = Y + drawn * dimension;
                for (int c = 0; c < dimension; ++c) {
                    const float from = other[c], *__restrict own = y.data + c * CROWD;
                    float *__restrict x = diff.data + c * CROWD;
                    for (int q = 0; q < lanes; ++q) x[q] = own[q] - from;
                }
                if (drawn >= first && drawn < first + count) {  // a point does not repel itself
                    int q = 0;
                    while (who[q] != drawn - first) ++q;
                    for (int c = 0; c < dimension; ++c) diff[c * CROWD + q] = 0;
                }
                add<D>(lanes, false, degrees[drawn]);
            }
            for (int c = 0; c < dimension; ++c)
                for (int q = 0; q < moved; ++q) y[c * CROWD + q] += float(s.rate) * sum[c * CROWD + q];
        }
    }
};

// D is the dimension if it is known at compile time, else 0.
template <int D, class Law>
void negatives_rows(const Negatives &s, const Law &law, const Weights &graph, const float *degrees, float *due,
                    Points<float> Y, float *out, int threads) {
    const std::int64_t n = Y.n;
    const int d = Y.d;
    PerThread<Crowd<Law>> crowds(threads, s, law, graph, degrees, Y, graph.longest_row() + 1);
    parallel_for((n + CROWD - 1) / CROWD, 16, crowds.threads(), [&](std::int64_t from, std::int64_t to, int slot) {
        Crowd<Law> &crowd = crowds[slot];
        for (std::int64_t first = from * CROWD; first < to * CROWD && first < n; first += CROWD) {
            crowd.start(first, due);
            crowd.template run<D>(first);
            for (int q = 0; q < crowd.count; ++q)
                for (int c = 0; c < d; ++c) out[(first + crowd.who[q]) * d + c] = crowd.y[c * CROWD + q];
        }
    });
}

template <class Law>
void negatives_by(const Negatives &s, const Law &law, const Weights &graph, const float *degrees, float *due,
                  Points<float> Y, float *out, int threads) {
    const auto run = Y.d == 2 ? negatives_rows<2, Law> : Y.d == 3 ? negatives_rows<3, Law> : negatives_rows<0, Law>;
    run(s, law, graph, degrees, due, Y, out, useful_threads(threads, double(graph.entries())));
}

inline void negatives_step(const Negatives &s, const Membership &k, const Weights &graph, const float *degrees,
                           float *due, Points<float> Y, float *out, int threads) {
    negatives_by(s, MembershipLaw{float(k.a), float(k.b), float(k.epsilon)}, graph, degrees, due, Y, out, threads);
}

inline void sampled_pairs_step(const Negatives &s, const PairTables &tables, const Weights &graph,
                               const float *degrees, float *due, Points<float> Y, float *out, int threads) {
    negatives_by(s, TabulatedLaw{tables}, graph, degrees, due, Y, out, threads);
}

}  // namespace EQ_ISA
}  // namespace eq
