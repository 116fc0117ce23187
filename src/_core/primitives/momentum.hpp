// Optimiser steps: momentum with gains, and centring, in passes over blocks of points.
#pragma once
#include <cmath>

#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

// Updates the velocity and the gains (d) of one point, where `gradient(c)` is its gradient along axis c.
template <class R, class Gradient>
EQ_INLINE void momentum_point(const Step &step, int d, const Gradient &gradient, R *velocity, R *gain) {
    const R momentum = R(step.momentum), up = R(step.gain_up), down = R(step.gain_down), least = R(step.min_gain);
    const R cap = R(step.max_step);
    R length = 0;
    for (int c = 0; c < d; ++c) {
        const double push = step.rate * gradient(c), turn = push * velocity[c];  // > 0: the last step went uphill
        R g = gain[c];
        if (turn <= 0) g += up;
        else if (g * turn > step.turned * velocity[c] * velocity[c]) g *= down;
        g = g < least ? least : g;
        gain[c] = g;
        velocity[c] = momentum * velocity[c] - R(g * push);
        length += velocity[c] * velocity[c];
    }
    length = std::sqrt(length);
    if (length > cap)
        for (int c = 0; c < d; ++c) velocity[c] *= cap / length;
}

template <class R>
void momentum_step(const Step &step, const double *gradient, std::int64_t n, int d, R *velocity, R *gain) {
    for (std::int64_t i = 0; i < n * d; i += d)
        momentum_point(step, d, [&](int c) { return gradient[i + c]; }, velocity + i, gain + i);
}

inline std::int64_t step_blocks(std::int64_t n) { return (n + STEP_BLOCK - 1) / STEP_BLOCK; }

// Calls use(block, its first point, the point after its last).
template <class Use> void for_step_blocks(std::int64_t n, int threads, const Use &use) {
    parallel_for(step_blocks(n), 1, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t b = first; b < last; ++b) {
            const std::int64_t end = (b + 1) * STEP_BLOCK;
            use(b, b * STEP_BLOCK, end < n ? end : n);
        }
    });
}

// The sums (d) of the rows first .. last - 1 of U (n, d), in float64: four partial sums per column.
EQ_INLINE void sum_rows(const float *U, int d, std::int64_t first, std::int64_t last, double *sums) {
    for (int c = 0; c < d; ++c) {
        double part[4] = {0, 0, 0, 0};
        std::int64_t i = first;
        for (; i + 4 <= last; i += 4)
            for (int l = 0; l < 4; ++l) part[l] += U[(i + l) * d + c];
        for (; i < last; ++i) part[0] += U[i * d + c];
        sums[c] = (part[0] + part[1]) + (part[2] + part[3]);
    }
}

// The means (d) of points, from the sums (blocks, d) of their blocks.
inline void mean_of_blocks(const double *sums, std::int64_t n, int d, float *mean) {
    for (int c = 0; c < d; ++c) {
        double sum = 0;
        for (std::int64_t b = 0; b < step_blocks(n); ++b) sum += sums[b * d + c];
        mean[c] = float(sum / double(n));
    }
}

// Writes U (n, d) minus its mean row to `out`, which may be U.
inline void center(Points<float> U, float *out, int threads) {
    const std::int64_t n = U.n;
    const int d = U.d;
    Buffer<double> sums(step_blocks(n) * d, UNINITIALIZED);
    Buffer<float> mean(d, UNINITIALIZED);
    for_step_blocks(n, threads, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
        sum_rows(U.data, d, first, last, sums.data + b * d);
    });
    mean_of_blocks(sums.data, n, d, mean.data);
    for_step_blocks(n, threads, [&](std::int64_t, std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i)
            for (int c = 0; c < d; ++c) out[i * d + c] = U.data[i * d + c] - mean[c];
    });
}

// Σ_i value(i) over n items from `first` on, by halving the range down to 128 items or fewer, with 8 partial sums. This
// is the order of NumPy, in which the error grows with log n.
template <class Value> double pairwise_sum(const Value &value, std::int64_t first, std::int64_t n) {
    if (n > 128) {
        const std::int64_t half = n / 16 * 8;
        return pairwise_sum(value, first, half) + pairwise_sum(value, first + half, n - half);
    }
    std::int64_t i = 0;
    double total = 0;
    if (n >= 8) {
        double part[8];
        for (; i < 8; ++i) part[i] = value(first + i);
        for (; i + 8 <= n; i += 8)
            for (int l = 0; l < 8; ++l) part[l] += value(first + i + l);
        total = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; i < n; ++i) total += value(first + i);
    return total;
}

// The same sum on several threads: the branches of five halvings are summed in parallel.
template <class Value> double parallel_sum(const Value &value, std::int64_t n, int threads) {
    constexpr int BRANCHES = 32;
    if (n < BRANCHES * 256) return pairwise_sum(value, 0, n);  // every branch must be one of the halvings above
    std::int64_t start[BRANCHES + 1] = {0};
    double sums[BRANCHES];
    start[BRANCHES] = n;
    for (int step = BRANCHES; step > 1; step /= 2)
        for (int b = 0; b < BRANCHES; b += step)
            start[b + step / 2] = start[b] + (start[b + step] - start[b]) / 16 * 8;
    parallel_for(BRANCHES, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t b = first; b < last; ++b) sums[b] = pairwise_sum(value, start[b], start[b + 1] - start[b]);
    });
    for (int step = 1; step < BRANCHES; step *= 2)
        for (int b = 0; b < BRANCHES; b += 2 * step) sums[b] += sums[b + step];
    return sums[0];
}

inline double sum_all(const double *x, std::int64_t n, int threads) {
    return parallel_sum([&](std::int64_t i) { return x[i]; }, n, threads);
}

}  // namespace EQ_ISA
}  // namespace eq
