// One step of stochastic descent by sampled edges, each with a few random partners to be pushed from (docs/math.md,
// section 16). Every point gathers the pulls of its own edges and its own pushes from the map as it was before the step,
// and feels its own moves at once. So the points are independent, and the bytes do not depend on the number of threads.
#pragma once
#include "ops.hpp"
#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int CROWD = 32;  // points that a thread moves side by side; a draw serves them all

// The finaliser of splitmix64 (Steele, Lea & Flood 2014): a counter in, random bits out.
EQ_INLINE std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// A crowd of consecutive points, each with its edges that are due.
// In every round each point that has an edge left is pulled along it and pushed from the negatives of the round, which
// are the same for all. Arrays run over the points of the crowd, so every loop is over them.
struct Crowd {
    const Negatives &s;
    const Weights &graph;
    const float *degrees, *Y;
    std::int64_t n, longest;
    int d;
    int count = 0, who[CROWD];                 // the points by their number of due edges, falling
    std::int64_t found[CROWD];
    Buffer<std::int64_t> edges;                // (CROWD, longest): those that are due
    Buffer<float> y, diff, sum;                // (d, CROWD)
    alignas(32) float inverse[CROWD];          // of the degrees

    Crowd(const Negatives &s_, const Weights &graph_, const float *degrees_, const float *Y_, std::int64_t n_, int d_,
          std::int64_t longest_)
        : s(s_), graph(graph_), degrees(degrees_), Y(Y_), n(n_), longest(longest_), d(d_), edges(CROWD * longest_),
          y(std::int64_t(d_) * CROWD), diff(std::int64_t(d_) * CROWD), sum(std::int64_t(d_) * CROWD) {}

    void start(std::int64_t first, float *due) {
        const float until = float(s.until);
        count = 0;
        for (std::int64_t i = first; i < n && count < CROWD; ++i, ++count) {
            std::int64_t *list = edges.data + count * longest, m = 0;
            for (std::int64_t e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
                list[m] = e;
                m += due[e] < until;  // without a branch, which would be guessed wrong at every third edge
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

    // d2 from the differences, then the clipped moves along each axis added to `sum`: the pull of an edge, twice, as it is
    // seen from both its ends; or the push from a negative of this degree, and with it the share of the pushes that the
    // point gets when others draw it.
    template <int D> EQ_INLINE void add(int lanes, bool pull, float degree) {
        const int dimension = D > 0 ? D : d;
        const float a = float(s.a), b = float(s.b), epsilon = float(s.epsilon), clip = float(s.clip);
        const float *__restrict x = diff.data;
        float *__restrict total = sum.data;
        alignas(32) float d2[CROWD], strength[CROWD];
        for (int q = 0; q < lanes; ++q) d2[q] = x[q] * x[q];
        for (int c = 1; c < dimension; ++c)
            for (int q = 0; q < lanes; ++q) d2[q] += x[c * CROWD + q] * x[c * CROWD + q];
        if (pull) {
            const float factor = -2.0f * b * float(s.exaggeration);
            for (int q = 0; q < lanes; ++q) {
                const float r = clamp_below(d2[q], 1e-30f), t = a * exp(b * log(r));
                strength[q] = factor * t / (r * (1.0f + t));
            }
        } else {
            for (int q = 0; q < lanes; ++q) {
                const float r = clamp_below(d2[q], 1e-30f), t = a * exp(b * log(r));
                strength[q] = 2.0f * b / ((epsilon + r) * (1.0f + t));
            }
        }
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
        const std::uint64_t key = mix(mix(s.seed + 0x9E3779B97F4A7C15u * std::uint64_t(s.step + 1)) + std::uint64_t(first));
        std::uint64_t counter = 0;
        int moved = count;
        for (std::int64_t r = 0;; ++r) {
            while (moved > 0 && found[who[moved - 1]] <= r) --moved;
            if (moved == 0) return;
            const int lanes = (moved + 7) / 8 * 8;
            for (int q = 0; q < moved; ++q) {
                const float *other = Y + std::int64_t(graph.indices[edges[who[q] * longest + r]]) * dimension;
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
                if (drawn >= first && drawn < first + count) {  // no point is pushed from where it was itself
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

// Dimension D where the compiler may know it, else 0.
template <int D>
void negatives_rows(const Negatives &s, const Weights &graph, const float *degrees, float *due, const float *Y,
                    std::int64_t n, int d, float *out, int threads) {
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t length = graph.indptr[i + 1] - graph.indptr[i];
        longest = length > longest ? length : longest;
    }
#pragma omp parallel num_threads(threads)
    {
        Crowd crowd(s, graph, degrees, Y, n, d, longest + 1);
#pragma omp for schedule(dynamic, 16)
        for (std::int64_t first = 0; first < n; first += CROWD) {
            crowd.start(first, due);
            crowd.run<D>(first);
            for (int q = 0; q < crowd.count; ++q)
                for (int c = 0; c < d; ++c) out[(first + crowd.who[q]) * d + c] = crowd.y[c * CROWD + q];
        }
    }
}

inline void negatives_step(const Negatives &s, const Weights &graph, const float *degrees, float *due, const float *Y,
                           std::int64_t n, int d, float *out, int threads) {
    threads = worth(threads, graph.indptr[n]);
    const auto run = d == 2 ? negatives_rows<2> : d == 3 ? negatives_rows<3> : negatives_rows<0>;
    run(s, graph, degrees, due, Y, n, d, out, threads);
}

}  // namespace EQ_ISA
}  // namespace eq
