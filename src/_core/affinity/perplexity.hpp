// p_{j|i} ∝ exp(-β_i d²_ij), with β_i such that the entropy of row i is the log of the perplexity; docs/math.md
// section 3.
#pragma once
#include <cmath>

#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr double PADDING = 1e300;  // has weight 0 for all β > 1e-297; finite, so that 0 · PADDING = 0

struct Entropy {
    double value, slope;  // H(β) and dH/d(log β) = -β² Var_p(d²)
};

// Distances of a row are shifted to minimum 0 and scaled to mean 1, so β is near 1 whatever the unit of the data.
// Writes the unnormalised weights to `p`. Arrays are padded to a multiple of LANES, with weight 0.
EQ_INLINE Entropy entropy(const double *__restrict x, std::int64_t padded, double beta, double *__restrict p,
                          double *total) {
    double s0[LANES] = {}, s1[LANES] = {}, s2[LANES] = {};
    for (std::int64_t t = 0; t < padded; t += LANES)
        for (int l = 0; l < LANES; ++l) {
            const double d = x[t + l], x_beta = beta * d, e = x_beta < 700.0 ? exp(-x_beta) : 0.0;
            p[t + l] = e;
            s0[l] += e;
            s1[l] += e * d;
            s2[l] += e * d * d;
        }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) {
            s0[l] += s0[l + half];
            s1[l] += s1[l + half];
            s2[l] += s2[l + half];
        }
    const double mean = s1[0] / s0[0], variance = s2[0] / s0[0] - mean * mean;
    *total = s0[0];
    return {std::log(s0[0]) + beta * mean, -beta * beta * variance};
}

constexpr double TOLERANCE = 1e-9;  // in log-perplexity; the library promises 1e-5

// Newton's method on log β, with bisection where a step leaves the bracket. Returns Σ p.
inline double solve(const double *x, std::int64_t padded, double target, double *p) {
    double low = -700, high = 700, theta = 0, total = 1;
    for (int step = 0; step < 200; ++step) {
        const Entropy h = entropy(x, padded, std::exp(theta), p, &total);
        const double excess = h.value - target;
        if (std::fabs(excess) < TOLERANCE || high - low < 1e-15 * (1 + std::fabs(theta))) break;
        (excess > 0 ? low : high) = theta;
        double next = theta - excess / h.slope;
        // Far from the root H is flat and Newton's steps are huge: change β by at most e⁴ until both ends are known.
        if (!(std::fabs(next - theta) < 4)) next = theta + (excess > 0 ? 4 : -4);
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        theta = next;
    }
    return total;
}

struct RowScratch {
    Buffer<double> x, p, sum;
    explicit RowScratch(std::int64_t padded) : x(padded), p(padded), sum(padded) {}
};

// Takes the squared distances of a row, without the point itself, in x[0 .. m-1]; writes the mean over the perplexities
// to `sum`. Returns whether the row is saturated.
inline bool solve_row(RowScratch &row, std::int64_t m, Perplexities perplexities) {
    const int scales = perplexities.count;
    const std::int64_t padded = (m + LANES - 1) / LANES * LANES;
    double *__restrict x = row.x.data;
    double smallest = INFINITY, mean = 0;
    for (std::int64_t t = 0; t < m; ++t) smallest = x[t] < smallest ? x[t] : smallest;
    std::int64_t ties = 0;
    for (std::int64_t t = 0; t < m; ++t) {
        x[t] -= smallest;
        ties += x[t] == 0;
    }
    double largest = 0;
    for (std::int64_t t = 0; t < m; ++t) largest = x[t] > largest ? x[t] : largest;
    if (largest > 0) {  // divide twice: 1 / mean may overflow
        for (std::int64_t t = 0; t < m; ++t) mean += (x[t] /= largest);
        mean /= double(m);
        for (std::int64_t t = 0; t < m; ++t) x[t] /= mean;
    }
    for (std::int64_t t = m; t < padded; ++t) x[t] = PADDING;

    bool saturated = false;
    for (std::int64_t t = 0; t < m; ++t) row.sum[t] = 0;
    for (int s = 0; s < scales; ++s) {
        const double perplexity = perplexities.data[s], target = std::log(perplexity);
        double total;
        if (perplexity >= double(m)) {  // the limit β = 0
            for (std::int64_t t = 0; t < m; ++t) row.p[t] = 1;
            total = double(m);
        } else if (std::log(double(ties)) >= target - TOLERANCE) {  // the limit β = ∞
            for (std::int64_t t = 0; t < m; ++t) row.p[t] = x[t] == 0;
            total = double(ties);
            saturated = saturated || double(ties) > perplexity * (1 + 1e-9);
        } else {
            total = solve(x, padded, target, row.p.data);
        }
        for (std::int64_t t = 0; t < m; ++t) row.sum[t] += row.p[t] / (total * scales);
    }
    return saturated;
}

EQ_INLINE double squared_distance(const double *x, const double *y, std::int64_t dimension) {
    double lanes[8] = {}, tail = 0;
    std::int64_t c = 0;
    for (; c + 8 <= dimension; c += 8)
        for (int l = 0; l < 8; ++l) {
            const double diff = x[c + l] - y[c + l];
            lanes[l] += diff * diff;
        }
    for (; c < dimension; ++c) tail += (x[c] - y[c]) * (x[c] - y[c]);
    for (int half = 4; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0] + tail;
}

inline void pair_distances(Points<double> X, const std::int32_t *neighbors, int k, const std::int32_t *rows,
                           std::int64_t count, bool squared, double *distances, int threads) {
    parallel_for(count, 64, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t p = first; p < last; ++p) {
            const std::int64_t i = rows[p];
            for (int t = 0; t < k; ++t) {
                const double d2 = squared_distance(X.row(i), X.row(neighbors[i * k + t]), X.d);
                distances[i * k + t] = squared ? d2 : std::sqrt(d2);
            }
        }
    });
}

template <class R>
void conditional(const Distances &D, Perplexities perplexities, R *P, std::uint8_t *saturated, int threads) {
    const std::int64_t n = D.n, *const indptr = D.graph.indptr;
    const std::int64_t longest = indptr != nullptr ? D.graph.longest_row() : n - 1;
    const std::int64_t pairs = indptr != nullptr ? D.graph.entries() : n * n;
    PerThread<RowScratch> rows(useful_threads(threads, double(pairs) * perplexities.count),
                               (longest + LANES) / LANES * LANES);
    parallel_for(n, 16, rows.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        RowScratch &row = rows[slot];
        for (std::int64_t i = first; i < last; ++i) {
            if (indptr != nullptr) {
                const std::int64_t from = indptr[i], m = indptr[i + 1] - from;
                for (std::int64_t t = 0; t < m; ++t) row.x[t] = D.values[from + t];
                saturated[i] = solve_row(row, m, perplexities);
                for (std::int64_t t = 0; t < m; ++t) P[from + t] = R(row.sum[t]);
                continue;
            }
            for (std::int64_t j = 0; j < n; ++j)
                if (j != i)
                    row.x[j - (j > i)] = D.dense != nullptr ? D.dense[i * n + j]
                                                            : squared_distance(D.points + i * D.dimension,
                                                                               D.points + j * D.dimension, D.dimension);
            saturated[i] = solve_row(row, n - 1, perplexities);
            for (std::int64_t j = 0; j < n; ++j) P[i * n + j] = j == i ? R(0) : R(row.sum[j - (j > i)]);
        }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
