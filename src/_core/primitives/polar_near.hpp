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

// The sums of one target over runs of consecutive points, 8 at a time in float32.
struct RunSum {
    HyperbolicRows space;
    LookUp k;
    const float *rows;     // of the points, for HyperbolicRows
    const float *charges;  // (m, stride), with 8 zeros after the last
    std::int64_t stride;
    int m;

    EQ_INLINE void add(const HyperbolicRows::Target &target, std::int64_t from, std::int64_t to, double *sum) const {
        constexpr int AHEAD = 8;  // vectors placed in the table before the first is read; chosen
        for (std::int64_t start = from; start < to; start += 8 * AHEAD) {
            const int count = int(to - start < 8 * AHEAD ? (to - start + 7) / 8 : AHEAD);
            Vector diff[AHEAD][2], value[AHEAD], slope[AHEAD];
            LookUp::Placed at[AHEAD];
            for (int v = 0; v < count; ++v) {
                std::int32_t index[8];
                for (int t = 0; t < 8; ++t) {
                    const std::int64_t j = start + 8 * v + t;
                    index[t] = std::int32_t(j < to ? j : to - 1);
                }
                Vector y[4];
                columns<4>(rows, index, y);
                at[v] = k.place(space.compare(target, y, diff[v]));
            }
            for (int v = 0; v < count; ++v) k.template read<true>(at[v], &value[v], &slope[v]);
            for (int q = 0; q < m; ++q) {
                Vector phi = {}, along = {}, across = {};
                for (int v = 0; v < count; ++v) {
                    const std::int64_t first = start + 8 * v;
                    Vector charge = load(charges + q * stride + first);
                    if (first + 8 > to)
                        for (int t = 0; t < 8; ++t) charge[t] = first + t < to ? charge[t] : 0.0f;
                    const Vector strength = charge * slope[v];
                    phi += charge * value[v];
                    along += strength * diff[v][0];
                    across += strength * diff[v][1];
                }
                sum[3 * q] += total(phi);
                sum[3 * q + 1] += total(along);
                sum[3 * q + 2] += total(across);
            }
        }
    }
};

// Adds to Φ and ½∇Φ at the targets the pairs closer than `reach`. The table is a function of x = (2R sinh(d/2R))² that is
// 0 beyond. Ring q contains the points at distances from q · reach to (q + 1) · reach from the origin, those from
// starts[q] to starts[q + 1], with ascending angles.
inline void polar_near(const Space &of, const Table &table, const Rings &rings, Points<float> targets, Points<float> Y,
                       Charges charges, FieldSums out, int threads) {
    const int m = charges.m;
    const double turn = 2 * 3.14159265358979323846, reach = rings.reach / of.radius, sine = std::sinh(reach / 2);
    const std::int64_t stride = Y.n;
    Buffer<float> rows(4 * Y.n), own(4 * targets.n), C(stride * m + 8);
    hyperbolic_rows(Y, of.radius, rows.data, threads);
    hyperbolic_rows(targets, of.radius, own.data, threads);
    for (std::int64_t i = 0; i < Y.n; ++i)
        for (int q = 0; q < m; ++q) C[q * stride + i] = float(charges.data[i * m + q]);
    const RunSum run{{float(of.radius)}, {table}, rows.data, C.data, stride, m};
    PerThread<Buffer<double>> sums(threads, 3 * std::int64_t(m));
    parallel_for(targets.n, 256, sums.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        double *const sum = sums[slot].data;
        for (std::int64_t i = first; i < last; ++i) {
            const HyperbolicRows::Target target = run.space.prepare(own.data + 4 * i);
            const double r = target.r;
            if (!(r < 1e9 * reach)) continue;  // NaN, or too far for any pair
            double t = std::atan2(double(target.b), double(target.a));
            t = t < 0 ? t + turn : t;
            for (int s = 0; s < 3 * m; ++s) sum[s] = 0;
            const std::int64_t ring = std::int64_t(r / reach);
            for (std::int64_t q = ring > 0 ? ring - 1 : 0; q <= ring + 1 && q < rings.count; ++q) {
                const std::int64_t from = rings.starts[q], to = rings.starts[q + 1];
                // sin²(Δt/2) <= sinh²(reach/2) / (sinh r sinh r'), r' >= q · reach
                const double bound = double(target.s) * std::sinh(double(q) * reach);
                if (bound <= sine * sine) {
                    run.add(target, from, to, sum);
                    continue;
                }
                const double width = 2 * std::asin(sine / std::sqrt(bound)) + 1e-6, low = t - width, high = t + width;
                run.add(target, lower_bound(rings.angles, from, to, low), lower_bound(rings.angles, from, to, high), sum);
                if (low < 0) run.add(target, lower_bound(rings.angles, from, to, low + turn), to, sum);
                if (high > turn) run.add(target, from, lower_bound(rings.angles, from, to, high - turn), sum);
            }
            for (int q = 0; q < m; ++q) {
                run.space.finish(target, sum + 3 * q + 1);
                out.potential[i * m + q] += sum[3 * q];
                for (int c = 0; c < 2; ++c) out.half_gradient[(i * m + q) * 2 + c] += sum[3 * q + 1 + c];
            }
        }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
