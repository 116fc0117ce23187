// The field from a sample of partners (docs/math.md, section 13), in any dimension. The partners of a block of
// consecutive points at one offset are consecutive too, so every loop runs over the block.
#pragma once
#include <algorithm>

#include "primitives/kernels.hpp"
#include "primitives/tiles.hpp"
#include "primitives/wide_edges.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int BLOCK = 64;  // points per block: up to d = 40 its coordinates and sums fit in an L1 cache of 32 kB
constexpr int RUN = 16;    // partners summed in R before the sum is added to float64
constexpr std::int64_t PART = 4096;     // points of field_at() that one thread adds up; chosen: 0.2 ms for a block
constexpr std::int64_t SUMS = 1 << 22;  // numbers in the sums of its parts, 32 MB; chosen

// Rows (n, d) as d columns that repeat the points twice, so that point i + o needs no modulus.
template <class R> struct Ring {
    std::int64_t stride;
    Buffer<R> data;
    template <class T> Ring(const T *rows, std::int64_t n, int d) : stride(2 * n + BLOCK), data(stride * d) {
        for (std::int64_t t = 0, i = 0; n > 0 && t < stride; ++t, i = i + 1 == n ? 0 : i + 1)
            for (int c = 0; c < d; ++c) data[c * stride + t] = R(rows[i * d + c]);
    }
};

// Columns of a block of points: x(c, t) = data[c * stride + S * t]. With S = 1 the points are consecutive, with S = 0
// they are all the same.
template <int S, class R> struct Partners {
    const R *data;
    std::int64_t stride;
    EQ_INLINE R operator()(int c, int t) const { return data[c * stride + S * t]; }
};

// Φ and ½∇Φ at one block of points, summed over partners, one per point at a time.
template <class R> struct BlockSum {
    int d, m;
    Buffer<R> home;        // (d, BLOCK)
    Buffer<R> run;         // (m, d + 1, BLOCK): sums over the last RUN partners
    Buffer<double> total;  // the same over all partners
    int pending = 0;
    BlockSum(int d_, int m_) : d(d_), m(m_), home(std::int64_t(d_) * BLOCK), run(size()), total(size()) {}
    std::int64_t size() const { return std::int64_t(m) * (d + 1) * BLOCK; }

    void start(const R *rows, std::int64_t count) {  // the rows of the block, padded with the first
        for (int t = 0; t < BLOCK; ++t)
            for (int c = 0; c < d; ++c) home[c * BLOCK + t] = rows[(t < count ? t : 0) * d + c];
        for (std::int64_t s = 0; s < size(); ++s) total[s] = 0, run[s] = R(0);
        pending = 0;
    }

    template <int S, class K> EQ_INLINE void add(const K &k, Partners<S, R> y, Partners<S, R> charge, R weight) {
        alignas(64) R d2[BLOCK], value[BLOCK], slope[BLOCK], force[BLOCK];
        for (int t = 0; t < BLOCK; ++t) d2[t] = R(0);
        for (int c = 0; c < d; ++c) {
            const R *__restrict own = home.data + c * BLOCK;
            for (int t = 0; t < BLOCK; ++t) {
                const R diff = own[t] - y(c, t);
                d2[t] += diff * diff;
            }
        }
        for (int t = 0; t < BLOCK; ++t) value_and_slope(k, d2[t], &value[t], &slope[t]);
        for (int q = 0; q < m; ++q) {
            R *__restrict sum = run.data + std::int64_t(q) * (d + 1) * BLOCK;
            for (int t = 0; t < BLOCK; ++t) {
                const R strength = weight * charge(q, t);
                sum[t] += strength * value[t];
                force[t] = strength * slope[t];
            }
            for (int c = 0; c < d; ++c) {
                const R *__restrict own = home.data + c * BLOCK;
                R *__restrict out = sum + (c + 1) * BLOCK;
                for (int t = 0; t < BLOCK; ++t) out[t] += force[t] * (own[t] - y(c, t));
            }
        }
        if (++pending == RUN) flush();
    }

    void flush() {
        for (std::int64_t s = 0; s < size(); ++s) total[s] += double(run[s]), run[s] = R(0);
        pending = 0;
    }

    void finish(std::int64_t first, std::int64_t count, FieldSums out) {
        flush();
        for (std::int64_t t = 0; t < count; ++t)
            for (int q = 0; q < m; ++q) {
                const double *sum = total.data + std::int64_t(q) * (d + 1) * BLOCK + t;
                const std::int64_t at = (first + t) * m + q;
                out.potential[at] = sum[0];
                for (int c = 0; c < d; ++c) out.half_gradient[at * d + c] = sum[(c + 1) * BLOCK];
            }
    }
};

// Calls `add(first, sum)` for every block of targets; each block is computed by one thread.
template <class R, class Add>
EQ_INLINE void block_sums(Points<R> targets, int m, std::int64_t partners, FieldSums out, int threads, Add add) {
    const std::int64_t n = targets.n;
    PerThread<BlockSum<R>> sums(useful_threads(threads, double(n) * double(partners) * m), targets.d, m);
    parallel_for((n + BLOCK - 1) / BLOCK, 1, sums.threads(), [&](std::int64_t from, std::int64_t to, int slot) {
        BlockSum<R> &sum = sums[slot];
        for (std::int64_t first = from * BLOCK; first < to * BLOCK && first < n; first += BLOCK) {
            const std::int64_t count = n - first < BLOCK ? n - first : BLOCK;
            sum.start(targets.row(first), count);
            add(first, sum);
            sum.finish(first, count, out);
        }
    });
}

// k and k' of 8 edges, for wide_rows().
template <class K> struct FieldOf {
    K k;
    EQ_INLINE Vector place(Vector d2) const { return d2; }
    template <bool> EQ_INLINE void read(Vector d2, Vector *value, Vector *slope) const {
        float in[8], k_out[8], slope_out[8];
        std::memcpy(in, &d2, sizeof in);
        for (int t = 0; t < 8; ++t) value_and_slope(k, in[t], &k_out[t], &slope_out[t]);
        *value = load(k_out);
        *slope = load(slope_out);
    }
};

// The weight of a stored pair that the sample lacks: (1 - w_o) times the charge, o = j - i modulo n.
struct Remainder {
    const float *offset_weight, *charge;
    std::int64_t n;
    EQ_INLINE Vector operator()(std::int64_t i, const std::int32_t *index, const float *stored) const {
        Vector w;
        for (int t = 0; t < 8; ++t) {
            const std::int64_t o = index[t] - i;
            w[t] = stored[t] * charge[index[t]] * (1.0f - offset_weight[o < 0 ? o + n : o]);
        }
        return w;
    }
};

// Adds the stored pairs, minus their share in the sample, in float32.
template <class R, class K> void add_stored(const K &k, const Weights &graph, Charges charges, Points<R> Y,
                                            const Offsets &offsets, FieldSums out, int threads) {
    const std::int64_t n = Y.n;
    const int d = Y.d, m = charges.m, W = (d + 7) / 8 * 8;
    Buffer<float> rows(n * W), offset_weight(n), charge(n);
    for (std::int64_t i = 0; i < n; ++i)
        for (int c = 0; c < d; ++c) rows[i * W + c] = float(Y.data[i * d + c]);
    for (std::int64_t s = 0; s < offsets.count; ++s) offset_weight[offsets.data[s]] = float(offsets.weights[s]);
    Buffer<double> phi(n), half(n * d);
    for (int q = 0; q < m; ++q) {
        for (std::int64_t i = 0; i < n; ++i) charge[i] = float(charges.data[i * m + q]);
        const Remainder left{offset_weight.data, charge.data, n};
        const auto run = W == 8 ? wide_rows<8, true, FieldOf<K>, Remainder> : wide_rows<0, true, FieldOf<K>, Remainder>;
        run({k}, left, graph, rows.data, rows.data, {W, d}, {phi.data, half.data}, threads);
        for (std::int64_t i = 0; i < n; ++i) {
            out.potential[i * m + q] += phi[i];
            for (int c = 0; c < d; ++c) out.half_gradient[(i * m + q) * d + c] += half[i * d + c];
        }
    }
}

template <class R> void field_offsets(const Kernel &kernel, Charges charges, Points<R> Y, const Offsets &offsets,
                                      const Csr &graph, FieldSums out, int threads) {
    const Ring<R> points(Y.data, Y.n, Y.d), charge(charges.data, Y.n, charges.m);
    with_kernel<R>(kernel, [&](auto k) {
        block_sums(Y, charges.m, offsets.count, out, threads, [&](std::int64_t first, BlockSum<R> &sum) {
            for (std::int64_t s = 0; s < offsets.count; ++s) {
                const std::int64_t from = first + offsets.data[s];
                sum.template add<1>(k, {points.data.data + from, points.stride},
                                    {charge.data.data + from, charge.stride}, R(offsets.weights[s]));
            }
        });
    });
    if (graph.indptr == nullptr) return;
    with_kernel<float>(kernel, [&](auto k) {
        add_stored(k, Weights(graph), charges, Y, offsets, out, useful_threads(threads, double(graph.entries())));
    });
}

// Sums over all points of Y, in parts of PART points, which different threads can sum at the same targets. The parts
// are added in order, so that the sums depend neither on the number of threads nor on the other targets.
template <class R>
void field_at(const Kernel &kernel, Charges charges, Points<R> targets, Points<R> Y, FieldSums out, int threads) {
    const int d = Y.d, m = charges.m;
    Buffer<R> charge(Y.n * m);
    for (std::int64_t i = 0; i < Y.n * m; ++i) charge[i] = R(charges.data[i]);
    const std::int64_t parts = (Y.n + PART - 1) / PART, width = std::int64_t(m) * (d + 1);
    const std::int64_t most = std::max<std::int64_t>(1, SUMS / (std::max<std::int64_t>(1, parts) * width * BLOCK)) * BLOCK;
    const std::int64_t group = std::min(most, (targets.n + BLOCK - 1) / BLOCK * BLOCK);  // targets at a time
    Buffer<double> potential(parts * group * m), half(parts * group * m * d);
    PerThread<BlockSum<R>> block_sum(useful_threads(threads, double(targets.n) * double(Y.n) * m), d, m);
    with_kernel<R>(kernel, [&](auto k) {
        for (std::int64_t first = 0; first < targets.n; first += group) {
            const std::int64_t count = std::min(group, targets.n - first), blocks = (count + BLOCK - 1) / BLOCK;
            parallel_for(blocks * parts, 1, block_sum.threads(), [&](std::int64_t from, std::int64_t to, int slot) {
                BlockSum<R> &sum = block_sum[slot];
                for (std::int64_t task = from; task < to; ++task) {
                    const std::int64_t start = task % blocks * BLOCK, part = task / blocks;
                    sum.start(targets.row(first + start), std::min<std::int64_t>(BLOCK, count - start));
                    for (std::int64_t j = part * PART; j < (part + 1) * PART && j < Y.n; ++j)
                        sum.template add<0>(k, {Y.data + j * d, 1}, {charge.data + j * m, 1}, R(1));
                    const std::int64_t at = part * group * m;
                    sum.finish(start, std::min<std::int64_t>(BLOCK, count - start), {&potential[at], &half[at * d]});
                }
            });
            const auto add = [&](const Buffer<double> &terms, std::int64_t numbers, double *sums) {
                parallel_for(count * numbers, 4096, block_sum.threads(), [&](std::int64_t from, std::int64_t to, int) {
                    for (std::int64_t i = from; i < to; ++i) {
                        double sum = 0;
                        for (std::int64_t part = 0; part < parts; ++part) sum += terms[part * group * numbers + i];
                        sums[first * numbers + i] = sum;
                    }
                });
            };
            add(potential, m, out.potential);
            add(half, std::int64_t(m) * d, out.half_gradient);
        }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
