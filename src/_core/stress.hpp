// Stress and half its gradient, docs/math.md section 14: Σ w (d - δ)² and G_i = Σ_j w (1 - δ/d)(y_i - y_j). The same
// for relative and logarithmic residuals, and for p-norms of the residuals.
// Each pair is computed once and acts on both its points. The sums of the second points are accumulated in stripes,
// whose number depends only on n and which are added in order, so results do not depend on the number of threads.
#pragma once
#include <cmath>

#include "primitives/exact.hpp"
#include "simd/vecmath.hpp"
#include "simd/vector8.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int ROWS = 32;     // rows per block: its 32 × 256 distances fit in an L1 cache of 32 kB
constexpr int STRIPES = 32;  // maximum number of stripes, and so of threads that have work

template <class R> EQ_INLINE R square(R x) { return x * x; }

// A residual and a summary, at compile time.
template <Residual RESIDUAL, Summary SUMMARY> struct Kind {
    static constexpr Residual residual = RESIDUAL;
    static constexpr Summary summary = SUMMARY;
    // The target of padding, which has weight 0: the other residuals are infinite at δ = 0.
    static constexpr float padding = RESIDUAL == Residual::absolute ? 0.0f : 1.0f;

    static EQ_INLINE double combine(double a, double b) {
        return SUMMARY == Summary::largest ? (a < b ? b : a) : a + b;
    }
};

// Calls run(Kind) for a misfit.
template <class Run> EQ_INLINE auto with_kind(const Misfit &misfit, const Run &run) {
    const auto with_summary = [&](auto residual) {
        constexpr Residual RESIDUAL = decltype(residual)::residual;
        switch (misfit.summary) {
            case Summary::powers: return run(Kind<RESIDUAL, Summary::powers>());
            case Summary::largest: return run(Kind<RESIDUAL, Summary::largest>());
            default: return run(Kind<RESIDUAL, Summary::squares>());
        }
    };
    switch (misfit.residual) {
        case Residual::relative: return with_summary(Kind<Residual::relative, Summary::squares>());
        case Residual::logarithmic: return with_summary(Kind<Residual::logarithmic, Summary::squares>());
        default: return with_summary(Kind<Residual::absolute, Summary::squares>());
    }
}

// The residual e, and (de/dd)/d, for squares times e: (d - δ)/d if e = d - δ. Coincident points have a residual but,
// since y_i - y_j = 0, no force.
template <class K, class R> EQ_INLINE R stretch(R d2, R target, R *residual) {
    d2 = clamp_below(d2, R(1e-36));
    R slope;
    if constexpr (K::residual == Residual::logarithmic) {
        *residual = R(0.5) * log(clamp_below(d2 / (target * target), R(1e-36)));
        slope = R(1) / d2;
    } else {
        const R r = std::sqrt(d2);
        *residual = r - target;
        if constexpr (K::residual == Residual::absolute && K::summary == Summary::squares) return *residual / r;
        slope = R(1) / r;
        if constexpr (K::residual == Residual::relative) {
            *residual /= target;
            slope /= target;
        }
    }
    return K::summary == Summary::squares ? *residual * slope : slope;
}

// x^p for p = 2^doublings, and x^(p - 1): x² x⁴ ⋯ x^(p/2) is x^(p - 2).
template <class R> EQ_INLINE R power_of_two(R x, int doublings, R *one_less) {
    R power = x * x, product = R(1);
    for (int m = 1; m < doublings; ++m) {
        product *= power;
        power *= power;
    }
    *one_less = product * x;
    return power;
}

// Rows of one block against one tile of columns.
template <class R, class K> struct StressBlock {
    typedef R Part __attribute__((vector_size(VECTOR_BYTES)));
    static constexpr int PART = VECTOR_BYTES / sizeof(R);
    int d;
    Misfit misfit;
    Buffer<R> column_sum;  // (d, TILE)
    alignas(ALIGNMENT) R strength[TILE], residual[TILE];
    alignas(ALIGNMENT) float delta[TILE], weight[TILE];
    StressBlock(int d_, const Misfit &misfit_) : d(d_), misfit(misfit_), column_sum(std::int64_t(d_) * TILE) {}

    void start() {
        for (int t = 0; t < d * TILE; ++t) column_sum[t] = R(0);
    }

    // Copies columns from .. to - 1 of a tile to `delta` and `weight`; the others get weight 0. Null weights are all 1.
    void part_of(const float *targets, const float *weights, std::int64_t from, std::int64_t to) {
        const std::int64_t low = from < 0 ? 0 : from < TILE ? from : TILE, high = to < TILE ? to : TILE;
        for (int t = 0; t < TILE; ++t) delta[t] = K::padding;
        std::memset(weight, 0, sizeof weight);
        if (low >= high) return;
        std::memcpy(delta + low, targets + low, (high - low) * sizeof(float));
        if (weights != nullptr) std::memcpy(weight + low, weights + low, (high - low) * sizeof(float));
        else
            for (std::int64_t t = low; t < high; ++t) weight[t] = 1.0f;
    }

    // One row, at `home` (d): adds its half gradient to sum[c * stride] and returns its stress. Coordinate c of column
    // t is columns[c * step + t]; a null w means weights of 1.
    double row(const R *home, const R *columns, std::int64_t step, const float *target, const float *w, double *sum,
               std::int64_t stride) {
        switch (d) {
            case 1: return row_in<1>(home, columns, step, target, w, sum, stride);
            case 2: return row_in<2>(home, columns, step, target, w, sum, stride);
            case 3: return row_in<3>(home, columns, step, target, w, sum, stride);
            default: return row_in<0>(home, columns, step, target, w, sum, stride);
        }
    }

    // DIMENSION is d if it is known at compile time, else 0.
    template <int DIMENSION> EQ_INLINE double row_in(const R *home, const R *__restrict columns, std::int64_t step,
                                                     const float *__restrict target, const float *__restrict w,
                                                     double *sum, std::int64_t stride) {
        const int dimension = DIMENSION > 0 ? DIMENSION : d;
        R *__restrict r = strength;
        R *__restrict e = residual;
        if constexpr (DIMENSION > 0) {
            for (int t = 0; t < TILE; ++t) {
                R d2 = R(0);
                for (int c = 0; c < DIMENSION; ++c) d2 += square(home[c] - columns[c * step + t]);
                r[t] = d2;
            }
        } else {
            for (int t = 0; t < TILE; ++t) r[t] = R(0);
            for (int c = 0; c < dimension; ++c)
                for (int t = 0; t < TILE; ++t) r[t] += square(home[c] - columns[c * step + t]);
        }
        for (int t = 0; t < TILE; ++t) r[t] = stretch<K>(r[t], R(target[t]), &e[t]);
        if (misfit.stretched)
            for (int t = 0; t < TILE; ++t) {
                r[t] = e[t] > R(0) ? r[t] : R(0);
                e[t] = e[t] > R(0) ? e[t] : R(0);
            }
        if constexpr (K::summary == Summary::largest) return largest(e, w);
        double stress;
        if constexpr (K::summary == Summary::powers) {
            stress = powers(r, e, w);
        } else {
            stress = w == nullptr ? squares(e, nullptr) : squares(e, w);
            if (w != nullptr)
                for (int t = 0; t < TILE; ++t) r[t] *= R(w[t]);
        }
        for (int c = 0; c < dimension; ++c) {
            const R own = home[c], *__restrict y = columns + c * step;
            R *__restrict out = column_sum.data + c * TILE;
            Part lanes[LANES / PART] = {};
            for (int t = 0; t < TILE; t += LANES)
                for (int l = 0; l < LANES / PART; ++l) {
                    const Part push = part(r + t + l * PART) * (own - part(y + t + l * PART));
                    const Part pulled = part(out + t + l * PART) - push;
                    std::memcpy(out + t + l * PART, &pulled, sizeof pulled);
                    lanes[l] += push;
                }
            sum[c * stride] += total(lanes);
        }
        return stress;
    }

    static EQ_INLINE Part part(const R *x) {
        Part v;
        std::memcpy(&v, x, sizeof v);
        return v;
    }

    // The total of LANES partial sums, in the order of dot().
    static EQ_INLINE R total(const Part *lanes) {
        R x[LANES];
        std::memcpy(x, lanes, sizeof x);
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) x[l] += x[l + half];
        return x[0];
    }

    // Σ_t w_t e_t²; a null w means weights of 1.
    static EQ_INLINE R squares(const R *__restrict e, const float *__restrict w) {
        Part lanes[LANES / PART] = {};
        for (int t = 0; t < TILE; t += LANES)
            for (int l = 0; l < LANES / PART; ++l) {
                const Part x = part(e + t + l * PART);
                Part square = x * x;
                if (w != nullptr)
                    for (int q = 0; q < PART; ++q) square[q] *= R(w[t + l * PART + q]);
                lanes[l] += square;
            }
        return total(lanes);
    }

    // Σ_t x^p with x = w e / unit; multiplies the slopes r by x^(p - 1) w / unit. A null w means weights of 1.
    EQ_INLINE R powers(R *__restrict r, R *__restrict e, const float *__restrict w) const {
        const R inverse = R(1 / misfit.unit);
        for (int t = 0; t < TILE; ++t) {
            const R scale = w == nullptr ? inverse : R(w[t]) * inverse;
            R one_less;
            e[t] = power_of_two(e[t] * scale, misfit.doublings, &one_less);
            r[t] *= one_less * scale;
        }
        Part lanes[LANES / PART] = {};
        for (int t = 0; t < TILE; t += LANES)
            for (int l = 0; l < LANES / PART; ++l) lanes[l] += part(e + t + l * PART);
        return total(lanes);
    }

    // The largest w_t |e_t|; a null w means weights of 1.
    static EQ_INLINE R largest(const R *__restrict e, const float *__restrict w) {
        R most = R(0);
        for (int t = 0; t < TILE; ++t) {
            const R size = std::fabs(w == nullptr ? e[t] : R(w[t]) * e[t]);
            most = most < size ? size : most;
        }
        return most;
    }

    // Adds the half gradients that the rows since start() gave the columns, the first `count` of which are not padding.
    void finish(double *sum, std::int64_t stride, std::int64_t count) const {
        for (int c = 0; c < d; ++c)
            for (int t = 0; t < count; ++t) sum[c * stride + t] += column_sum[c * TILE + t];
    }
};

// Distances between the points X in float32, computed a block at a time from differences.
struct PointTargets {
    std::int64_t n, tiles, D;
    Buffer<float> panels;  // (tiles, D, TILE)
    PointTargets(const float *X, std::int64_t n_, std::int64_t D_)
        : n(n_), tiles((n_ + TILE - 1) / TILE), D(D_), panels(tiles * D_ * TILE) {
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t c = 0; c < D; ++c) panels[(i / TILE * D + c) * TILE + i % TILE] = X[i * D + c];
    }

    float at(std::int64_t i, std::int64_t c) const { return panels[(i / TILE * D + c) * TILE + i % TILE]; }

    // Distances (ROWS, TILE) from rows first .. first + ROWS - 1 to one tile of columns; rows beyond n repeat the last.
    void block(std::int64_t first, std::int64_t tile, float *__restrict out) const {
        const float *__restrict panel = panels.data + tile * D * TILE;
        for (int r = 0; r < ROWS; r += 4) {
            std::int64_t row[4];
            for (int q = 0; q < 4; ++q) row[q] = first + r + q < n ? first + r + q : n - 1;
            for (int t = 0; t < TILE; t += 16) {
                Vector sum[4][2] = {};
                for (std::int64_t c = 0; c < D; ++c) {
                    const Vector x0 = load(panel + c * TILE + t), x1 = load(panel + c * TILE + t + 8);
                    for (int q = 0; q < 4; ++q) {
                        const float own = at(row[q], c);
                        const Vector d0 = own - x0, d1 = own - x1;
                        sum[q][0] += d0 * d0;
                        sum[q][1] += d1 * d1;
                    }
                }
                for (int q = 0; q < 4; ++q) std::memcpy(out + (r + q) * TILE + t, sum[q], sizeof sum[q]);
            }
        }
        for (int t = 0; t < ROWS * TILE; ++t) out[t] = std::sqrt(out[t]);
    }
};

// The offset of (i, 0) in a condensed matrix, which stores the pairs i < j row by row.
EQ_INLINE std::int64_t condensed_row(std::int64_t i, std::int64_t n) { return i * n - i * (i + 1) / 2 - i - 1; }

inline void condensed_distances(Points<float> X, float *out, int threads) {
    const std::int64_t n = X.n, blocks = (n + ROWS - 1) / ROWS;
    const PointTargets points(X.data, n, X.d);
    PerThread<Buffer<float>> scratch(useful_threads(threads, double(n) * double(n) * X.d / 64), ROWS * TILE);
    parallel_for(blocks, 1, scratch.threads(), [&](std::int64_t from, std::int64_t to, int slot) {
        float *const distances = scratch[slot].data;
        for (std::int64_t b = from; b < to; ++b)
            for (std::int64_t tile = b * ROWS / TILE; tile < points.tiles; ++tile) {
                points.block(b * ROWS, tile, distances);
                const std::int64_t end = (tile + 1) * TILE < n ? (tile + 1) * TILE : n;
                for (std::int64_t i = b * ROWS; i < (b + 1) * ROWS && i < n; ++i)
                    for (std::int64_t j = tile * TILE > i ? tile * TILE : i + 1; j < end; ++j)
                        out[condensed_row(i, n) + j] = distances[(i - b * ROWS) * TILE + j - tile * TILE];
            }
    });
}

// All pairs. The targets δ are stored in condensed form, with or without weights, or computed from points.
template <class K, class R> double stress_pairs_of(K, const Misfit &misfit, const Targets &targets, Points<R> map,
                                                   double *half_gradient, int threads) {
    using Block = StressBlock<R, K>;
    const std::int64_t n = map.n;
    const int d = map.d;
    const Columns<R> Y(map);
    const bool stored = targets.points == nullptr;
    const PointTargets points(targets.points, stored ? 0 : n, stored ? 0 : targets.dimension);
    const std::int64_t blocks = (n + ROWS - 1) / ROWS, tiles = Y.stride / TILE;
    const std::int64_t quarter = blocks / 4 + 1, stripes = quarter < STRIPES ? quarter : STRIPES;
    Buffer<double> sums(stripes * d * Y.stride), stress(stripes);

    const auto add_block = [&](std::int64_t b, std::int64_t tile, Block &block, float *distances, double *sum) {
        const std::int64_t first = b * ROWS, last = first + ROWS < n ? first + ROWS : n, start = tile * TILE;
        const bool whole = start >= last && start + TILE <= n;
        double total = 0;
        block.start();
        if (!stored) points.block(first, tile, distances);
        for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t at = condensed_row(i, n) + start;
            const float *delta = stored ? targets.condensed + at : distances + (i - first) * TILE;
            const float *weight = targets.weights == nullptr ? nullptr : targets.weights + at;
            if (!whole) {  // leave out pairs j <= i, which other blocks compute, and j >= n
                block.part_of(delta, weight, i + 1 - start, n - start);
                delta = block.delta;
                weight = block.weight;
            }
            total = K::combine(
                total, block.row(map.row(i), Y.data.data + start, Y.stride, delta, weight, sum + i, Y.stride));
        }
        block.finish(sum + start, Y.stride, TILE);
        return total;
    };
    threads = useful_threads(threads, double(n) * double(n) / 2 * (stored ? 1 : 1 + targets.dimension / 16));
    PerThread<Block> all_blocks(threads, d, misfit);
    PerThread<Buffer<float>> all_distances(threads, stored ? 1 : ROWS * TILE);
    parallel_for(stripes, 1, all_blocks.threads(), [&](std::int64_t from, std::int64_t to, int slot) {
        Block &block = all_blocks[slot];
        float *const distances = all_distances[slot].data;
        for (std::int64_t s = from; s < to; ++s)
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int64_t turn =
                    b % (2 * stripes);  // back and forth, so that each stripe gets long rows and short ones
                if (turn != s && turn != 2 * stripes - 1 - s) continue;
                for (std::int64_t tile = b * ROWS / TILE; tile < tiles; ++tile)
                    stress[s] =
                        K::combine(stress[s], add_block(b, tile, block, distances, sums.data + s * d * Y.stride));
            }
    });
    parallel_for(n, 1024, all_blocks.threads(), [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i)
            for (int c = 0; c < d; ++c) {
                double sum = 0;
                for (std::int64_t s = 0; s < stripes; ++s) sum += sums[(s * d + c) * Y.stride + i];
                half_gradient[i * d + c] = sum;
            }
    });
    double total = 0;
    for (std::int64_t s = 0; s < stripes; ++s) total = K::combine(total, stress[s]);
    return total;
}

// Points Y (n, d) against points T (m, d), with targets δ (n, m), a weight per column, and half gradients of both.
template <class K, class R> double stress_between_of(K, const Misfit &misfit, const float *delta, const float *weights,
                                                     Points<R> Y, Points<R> others, double *half_gradient,
                                                     double *half_gradient_T, int threads) {
    using Block = StressBlock<R, K>;
    const std::int64_t n = Y.n, m = others.n;
    const int d = Y.d;
    const Columns<R> T(others);
    const std::int64_t blocks = (n + ROWS - 1) / ROWS, quarter = blocks / 4 + 1;
    const std::int64_t stripes = quarter < STRIPES ? quarter : STRIPES;
    Buffer<double> sums(stripes * d * T.stride), stress(stripes);
    for (std::int64_t i = 0; i < n * d; ++i) half_gradient[i] = 0;
    PerThread<Block> all_blocks(useful_threads(threads, double(n * m)), d, misfit);
    parallel_for(stripes, 1, all_blocks.threads(), [&](std::int64_t from, std::int64_t to, int slot) {
        Block &block = all_blocks[slot];
        for (std::int64_t s = from; s < to; ++s)
            for (std::int64_t b = blocks * s / stripes; b < blocks * (s + 1) / stripes; ++b)
                for (std::int64_t start = 0; start < m; start += TILE) {
                    const std::int64_t count = m - start < TILE ? m - start : TILE;
                    block.start();
                    for (std::int64_t i = b * ROWS; i < (b + 1) * ROWS && i < n; ++i) {
                        const float *row = delta + i * m + start, *weight = weights + start;
                        if (count < TILE) {
                            block.part_of(row, weight, 0, count);
                            row = block.delta;
                            weight = block.weight;
                        }
                        stress[s] = K::combine(stress[s], block.row(Y.row(i), T.data.data + start, T.stride, row,
                                                                    weight, half_gradient + i * d, 1));
                    }
                    block.finish(sums.data + s * d * T.stride + start, T.stride, count);
                }
    });
    double total = 0;
    for (std::int64_t s = 0; s < stripes; ++s) total = K::combine(total, stress[s]);
    for (std::int64_t j = 0; j < m; ++j)
        for (int c = 0; c < d; ++c) {
            double sum = 0;
            for (std::int64_t s = 0; s < stripes; ++s) sum += sums[(s * d + c) * T.stride + j];
            half_gradient_T[j * d + c] = sum;
        }
    return total;
}

// The pairs of a symmetric CSR matrix of weights, which stores both directions, with targets δ. `stress` (n) is the sum
// over the pairs of each point.
template <class K, class R> void stress_listed_of(K, const Misfit &misfit, const Weights &A, const float *delta,
                                                  Points<R> map, double *stress, double *half_gradient, int threads) {
    const std::int64_t n = map.n;
    const int d = map.d;
    const R inverse = R(1 / misfit.unit);
    const Columns<R> Y(map);
    PerThread<Buffer<R>> differences(useful_threads(threads, double(A.entries())), std::int64_t(d) * SHORT);
    parallel_for(n, 64, differences.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        Pairs<SHORT, R> pairs(differences[slot].data);
        alignas(64) R weight[SHORT], target[SHORT], residual[SHORT], strength[SHORT];
        for (std::int64_t i = first; i < last; ++i) {
            stress[i] = 0;
            for (int c = 0; c < d; ++c) half_gradient[i * d + c] = 0;
            for (std::int64_t from = A.indptr[i]; from < A.indptr[i + 1]; from += SHORT) {
                const std::int64_t left = A.indptr[i + 1] - from;
                const int count = int(left < SHORT ? left : SHORT);
                FlatSpace<R>(Y).listed(pairs, i, A.indices + from, count);
                load_weights<SHORT>(A, from, count, weight);
                for (int t = 0; t < SHORT; ++t) target[t] = t < count ? R(delta[from + t]) : R(K::padding);
                for (int t = 0; t < SHORT; ++t) {
                    strength[t] = stretch<K>(pairs.d2[t], target[t], &residual[t]);
                    if (misfit.stretched && !(residual[t] > R(0))) strength[t] = residual[t] = R(0);
                    if constexpr (K::summary == Summary::largest) {
                        const double size = std::fabs(weight[t] * residual[t]);
                        stress[i] = stress[i] < size ? size : stress[i];
                        strength[t] = residual[t] = target[t] = R(0);
                    } else if constexpr (K::summary == Summary::powers) {
                        const R scale = weight[t] * inverse;
                        R one_less;
                        target[t] = power_of_two(residual[t] * scale, misfit.doublings, &one_less);
                        residual[t] = R(1);
                        strength[t] *= one_less * scale;
                    } else {
                        strength[t] *= weight[t];
                        target[t] = weight[t] * residual[t];
                    }
                }
                stress[i] += dot<SHORT>(target, residual);
                for (int c = 0; c < d; ++c) half_gradient[i * d + c] += dot<SHORT>(strength, pairs.component(c));
            }
        }
    });
}

template <class R> double stress_pairs(const Misfit &misfit, const Targets &targets, Points<R> Y, double *half_gradient,
                                       int threads) {
    return with_kind(misfit,
                     [&](auto kind) { return stress_pairs_of(kind, misfit, targets, Y, half_gradient, threads); });
}

template <class R> double stress_between(const Misfit &misfit, const float *delta, const float *weights, Points<R> Y,
                                         Points<R> T, double *half_gradient, double *half_gradient_T, int threads) {
    return with_kind(misfit, [&](auto kind) {
        return stress_between_of(kind, misfit, delta, weights, Y, T, half_gradient, half_gradient_T, threads);
    });
}

template <class R> void stress_listed(const Misfit &misfit, const Weights &A, const float *delta, Points<R> Y,
                                      double *stress, double *half_gradient, int threads) {
    with_kind(misfit,
              [&](auto kind) { stress_listed_of(kind, misfit, A, delta, Y, stress, half_gradient, threads); });
}

}  // namespace EQ_ISA
}  // namespace eq
