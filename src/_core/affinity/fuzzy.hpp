// w_ij = exp(-max(0, r_ij - ρ_i) / σ_i), with σ_i such that row i has a given sum; docs/math.md section 3.
#pragma once
#include <cmath>

#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

// Replaces distances beyond the nearest, x >= 0, by weights with sum `target`: Newton's method on log(1/σ), with
// bisection where a step leaves the bracket. The sum decreases from m at σ = ∞ to the number of zeros at σ = 0; a
// target outside that range gives the nearer end. σ is at least `smallest`.
inline void solve_memberships(double *x, std::int64_t m, double target, double smallest) {
    double largest = 0, zeros = 0;
    for (std::int64_t t = 0; t < m; ++t) {
        largest = x[t] > largest ? x[t] : largest;
        zeros += x[t] == 0;
    }
    double theta = 0;  // σ = largest · e^-θ
    if (largest == 0 || target >= double(m)) {
        for (std::int64_t t = 0; t < m; ++t) x[t] = 1;
        return;
    }
    if (zeros >= target) {
        theta = 700;
    } else {
        double low = -50, high = 700;
        for (int step = 0; step < 200; ++step) {
            double sum = 0, slope = 0;
            const double beta = std::exp(theta) / largest;
            for (std::int64_t t = 0; t < m; ++t) {
                const double z = beta * x[t], w = z < 700 ? exp(-z) : 0;
                sum += w;
                slope -= z * w;
            }
            if (std::fabs(sum - target) < 1e-9 * target || high - low < 1e-14) break;
            (sum > target ? low : high) = theta;
            double next = theta - (sum - target) / slope;
            if (!(std::fabs(next - theta) < 4)) next = theta + (sum > target ? 4 : -4);
            if (!(next > low && next < high)) next = 0.5 * (low + high);
            theta = next;
        }
    }
    const double solved = largest * std::exp(-theta), sigma = solved > smallest ? solved : smallest;
    for (std::int64_t t = 0; t < m; ++t) {
        const double z = x[t] / sigma;
        x[t] = z < 700 ? exp(-z) : 0;
    }
}

template <class R>
void memberships(const Csr &graph, const double *D2, double target, double floor, R *W, int threads) {
    PerThread<Buffer<double>> scratch(useful_threads(threads, graph.entries()), graph.longest_row() + 1);
    parallel_for(graph.rows, 64, scratch.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        double *__restrict x = scratch[slot].data;
        for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t from = graph.indptr[i], m = graph.length(i);
            double nearest = INFINITY, mean = 0;
            for (std::int64_t t = 0; t < m; ++t) {
                x[t] = std::sqrt(D2[from + t]);
                mean += x[t] / double(m);
                if (x[t] > 0 && x[t] < nearest) nearest = x[t];  // duplicates do not count as the nearest
            }
            for (std::int64_t t = 0; t < m; ++t) x[t] = x[t] > nearest ? x[t] - nearest : 0;
            solve_memberships(x, m, target, floor * mean);
            for (std::int64_t t = 0; t < m; ++t) W[from + t] = R(x[t]);
        }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
