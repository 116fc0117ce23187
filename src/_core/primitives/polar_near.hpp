// The near field in the hyperbolic plane: pairs closer than `reach`, from points sorted by ring and angle.
#pragma once
#include <cmath>

#include "primitives/pairs.hpp"

namespace eq {
namespace EQ_ISA {

// The first of the ascending values[from .. to) that is not below x.
inline std::int64_t lower_bound(const double *values, std::int64_t from, std::int64_t to, double x) {
    while (from < to) {
        const std::int64_t middle = (from + to) / 2;
        if (values[middle] < x) from = middle + 1;
        else to = middle;
    }
    return from;
}

// The sums of one target over runs of consecutive points.
template <class R> struct RunSum {
    const HyperbolicSpace<R> &space;
    const Table &table;
    const R *charges;  // (m, stride)
    int m;
    double *sum;  // (m, 3)

    EQ_INLINE void add(Pairs<SHORT, R> &pairs, std::int64_t i, std::int64_t from, std::int64_t to) const {
        alignas(64) R value[SHORT], slope[SHORT], charge[SHORT], charge_slope[SHORT];
        for (std::int64_t start = from; start < to; start += SHORT) {
            const int count = int(to - start < SHORT ? to - start : SHORT);
            space.consecutive(pairs, i, start);
            for (int t = 0; t < SHORT; ++t) look_up(table, pairs.d2[t], &value[t], &slope[t]);
            for (int q = 0; q < m; ++q) {
                const R *c = charges + q * space.stride + start;
                for (int t = 0; t < SHORT; ++t) charge[t] = t < count ? c[t] : R(0);
                for (int t = 0; t < SHORT; ++t) charge_slope[t] = charge[t] * slope[t];
                sum[3 * q] += dot<SHORT>(charge, value);
                sum[3 * q + 1] += dot<SHORT>(charge_slope, pairs.component(0));
                sum[3 * q + 2] += dot<SHORT>(charge_slope, pairs.component(1));
            }
        }
    }
};

// Adds to Φ and ½∇Φ at the targets the pairs closer than `reach`. The table is a function of x = (2R sinh(d/2R))² that is
// 0 beyond. Ring q contains the points at distances from q · reach to (q + 1) · reach from the origin, those from
// starts[q] to starts[q + 1], with ascending angles.
template <class R>
void polar_near(const Space &of, const Table &table, const Rings &rings, Points<R> targets, Points<R> Y,
                Charges charges, FieldSums out, int threads) {
    const HyperbolicSpace<R> space(of, targets, Y);
    const int m = charges.m;
    const double turn = 2 * 3.14159265358979323846, reach = rings.reach / of.radius, sine = std::sinh(reach / 2);
    Buffer<R> C(space.stride * m + SHORT);
    for (std::int64_t i = 0; i < Y.n; ++i)
        for (int q = 0; q < m; ++q) C[q * space.stride + i] = R(charges.data[i * m + q]);
    PerThread<Buffer<R>> differences(threads, 2 * SHORT);
    PerThread<Buffer<double>> sums(threads, 3 * std::int64_t(m));
    parallel_for(targets.n, 256, sums.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        Pairs<SHORT, R> pairs(differences[slot].data);
        const RunSum<R> run{space, table, C.data, m, sums[slot].data};
        for (std::int64_t i = first; i < last; ++i) {
            const double a = double(targets.row(i)[0]), b = double(targets.row(i)[1]);
            const double r = std::sqrt(a * a + b * b) / of.radius;
            double t = std::atan2(b, a);
            t = t < 0 ? t + turn : t;
            if (!(r < 1e9 * reach)) continue;  // NaN, or too far for any pair
            for (int s = 0; s < 3 * m; ++s) run.sum[s] = 0;
            const std::int64_t own = std::int64_t(r / reach);
            for (std::int64_t q = own > 0 ? own - 1 : 0; q <= own + 1 && q < rings.count; ++q) {
                const std::int64_t from = rings.starts[q], to = rings.starts[q + 1];
                // sin²(Δt/2) <= sinh²(reach/2) / (sinh r sinh r'), r' >= q · reach
                const double bound = std::sinh(r) * std::sinh(double(q) * reach);
                if (bound <= sine * sine) {
                    run.add(pairs, i, from, to);
                    continue;
                }
                const double width = 2 * std::asin(sine / std::sqrt(bound)) + 1e-6, low = t - width, high = t + width;
                run.add(pairs, i, lower_bound(rings.angles, from, to, low), lower_bound(rings.angles, from, to, high));
                if (low < 0) run.add(pairs, i, lower_bound(rings.angles, from, to, low + turn), to);
                if (high > turn) run.add(pairs, i, from, lower_bound(rings.angles, from, to, high - turn));
            }
            for (int q = 0; q < m; ++q) {
                space.finish(i, run.sum + 3 * q + 1);
                out.potential[i * m + q] += run.sum[3 * q];
                for (int c = 0; c < 2; ++c) out.half_gradient[(i * m + q) * 2 + c] += run.sum[3 * q + 1 + c];
            }
        }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
