// The field from a sample of partners (docs/math.md, section 13), for any dimension. A block of consecutive points
// meets its partners at one offset all at once, and they are consecutive too: every loop runs over the block.
#pragma once
#include "primitives/kernels.hpp"
#include "primitives/wide_edges.hpp"
#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr int BLOCK = 64;  // points per block: up to d = 40 its coordinates and sums stay in a first cache of 32 kB
constexpr int RUN = 16;    // partners summed in R before the sum goes to float64

template <class R, class K> EQ_INLINE void value_and_slope(const K &k, R d2, R *value, R *slope) {
    const Radial<R> r = k(d2);
    *value = r.k;
    *slope = r.k * r.log_slope;
}
template <class R> EQ_INLINE void value_and_slope(const Tabulated<R> &k, R d2, R *value, R *slope) {
    look_up(k.table, d2, value, slope);  // here the table holds k and k'
}

// Rows (n, d) as d columns that run twice through the points, so that point i + o needs no modulus.
template <class R> struct Ring {
    std::int64_t stride;
    Buffer<R> data;
    template <class T> Ring(const T *rows, std::int64_t n, int d) : stride(2 * n + BLOCK), data(stride * d) {
        for (std::int64_t t = 0, i = 0; t < stride; ++t, i = i + 1 == n ? 0 : i + 1)
            for (int c = 0; c < d; ++c) data[c * stride + t] = R(rows[i * d + c]);
    }
};

// One number for each point of a block and each of some columns: x(c, t) = data[c * stride + S * t]. With S = 1 the
// points are consecutive, with S = 0 all are the same.
template <int S, class R> struct Partners {
    const R *data;
    std::int64_t stride;
    EQ_INLINE R operator()(int c, int t) const { return data[c * stride + S * t]; }
};

// Φ and ½∇Φ at one block of points from partners that come one after the other.
template <class R> struct BlockSum {
    int d, m;
    Buffer<R> home;        // (d, BLOCK)
    Buffer<R> run;         // (m, d + 1, BLOCK): of the last RUN partners
    Buffer<double> total;  // the same, of all
    int pending = 0;
    BlockSum(int d_, int m_)
        : d(d_), m(m_), home(std::int64_t(d_) * BLOCK), run(size()), total(size()) {}
    std::int64_t size() const { return std::int64_t(m) * (d + 1) * BLOCK; }

    void start(const R *rows, std::int64_t count) {  // the rows of the block; the padding repeats the first
        for (int t = 0; t < BLOCK; ++t)
            for (int c = 0; c < d; ++c) home[c * BLOCK + t] = rows[(t < count ? t : 0) * d + c];
        for (std::int64_t s = 0; s < size(); ++s) total[s] = 0, run[s] = R(0);
        pending = 0;
    }

    template <int S, class K> EQ_INLINE void add(const K &k, Partners<S, R> y, Partners<S, R> charge, R weight) {
        alignas(64) R d2[BLOCK], value[BLOCK], slope[BLOCK], force[BLOCK];
        for (int t = 0; t < BLOCK; ++t) d2[t] = R(0);
        for (int c = 0; c < d; ++c) {
            const R *own = home.data + c * BLOCK;
            for (int t = 0; t < BLOCK; ++t) {
                const R diff = own[t] - y(c, t);
                d2[t] += diff * diff;
            }
        }
        for (int t = 0; t < BLOCK; ++t) value_and_slope(k, d2[t], &value[t], &slope[t]);
        for (int q = 0; q < m; ++q) {
            R *sum = run.data + std::int64_t(q) * (d + 1) * BLOCK;
            for (int t = 0; t < BLOCK; ++t) {
                const R strength = weight * charge(q, t);
                sum[t] += strength * value[t];
                force[t] = strength * slope[t];
            }
            for (int c = 0; c < d; ++c) {
                const R *own = home.data + c * BLOCK;
                R *out = sum + (c + 1) * BLOCK;
                for (int t = 0; t < BLOCK; ++t) out[t] += force[t] * (own[t] - y(c, t));
            }
        }
        if (++pending == RUN) flush();
    }

    void flush() {
        for (std::int64_t s = 0; s < size(); ++s) total[s] += double(run[s]), run[s] = R(0);
        pending = 0;
    }

    void finish(std::int64_t count, double *potential, double *half_gradient) {
        flush();
        for (std::int64_t t = 0; t < count; ++t)
            for (int q = 0; q < m; ++q) {
                const double *sum = total.data + std::int64_t(q) * (d + 1) * BLOCK + t;
                potential[t * m + q] = sum[0];
                for (int c = 0; c < d; ++c) half_gradient[(t * m + q) * d + c] = sum[(c + 1) * BLOCK];
            }
    }
};

// Runs `add(first, sum)` for every block of the targets, each by one thread.
template <class R, class Add>
EQ_INLINE void block_sums(const R *targets, std::int64_t n, int d, int m, std::int64_t partners, double *potential,
                          double *half_gradient, int threads, Add add) {
    threads = worth(threads, n * partners * m);
#pragma omp parallel num_threads(threads)
    {
        BlockSum<R> sum(d, m);
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t first = 0; first < n; first += BLOCK) {
            const std::int64_t count = n - first < BLOCK ? n - first : BLOCK;
            sum.start(targets + first * d, count);
            add(first, sum);
            sum.finish(count, potential + first * m, half_gradient + first * m * d);
        }
    }
}

// k and k' of 8 edges, for wide_rows.
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

// What the sample leaves of a stored pair: 1 - w_o, o = j - i modulo n, times the charge.
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

// Adds the stored pairs, less what the sample holds of them, in float32.
template <class R, class K>
void add_stored(const K &k, const Weights &graph, const double *charges, int m, const R *Y, std::int64_t n, int d,
                const std::int64_t *offsets, const double *weights, std::int64_t count, double *potential,
                double *half_gradient, int threads) {
    const int W = (d + 7) / 8 * 8;
    Buffer<float> rows(n * W), offset_weight(n), charge(n);
    for (std::int64_t i = 0; i < n; ++i)
        for (int c = 0; c < d; ++c) rows[i * W + c] = float(Y[i * d + c]);
    for (std::int64_t s = 0; s < count; ++s) offset_weight[offsets[s]] = float(weights[s]);
    Buffer<double> phi(n), half(n * d);
    for (int q = 0; q < m; ++q) {
        for (std::int64_t i = 0; i < n; ++i) charge[i] = float(charges[i * m + q]);
        const Remainder left{offset_weight.data, charge.data, n};
        const auto run = W == 8 ? wide_rows<8, true, FieldOf<K>, Remainder> : wide_rows<0, true, FieldOf<K>, Remainder>;
        run({k}, left, graph, rows.data, n, rows.data, W, d, phi.data, half.data, threads);
        for (std::int64_t i = 0; i < n; ++i) {
            potential[i * m + q] += phi[i];
            for (int c = 0; c < d; ++c) half_gradient[(i * m + q) * d + c] += half[i * d + c];
        }
    }
}

template <class R>
void field_offsets(const Kernel &kernel, const double *charges, int m, const R *Y, std::int64_t n, int d,
                   const std::int64_t *offsets, const double *weights, std::int64_t count, const Weights &graph,
                   double *potential, double *half_gradient, int threads) {
    const Ring<R> points(Y, n, d), charge(charges, n, m);
    with_kernel<R>(kernel, [&](auto k) {
        block_sums(Y, n, d, m, count, potential, half_gradient, threads, [&](std::int64_t first, BlockSum<R> &sum) {
            for (std::int64_t s = 0; s < count; ++s) {
                const std::int64_t from = first + offsets[s];
                sum.template add<1>(k, {points.data.data + from, points.stride},
                                    {charge.data.data + from, charge.stride}, R(weights[s]));
            }
        });
    });
    if (graph.indptr == nullptr) return;
    with_kernel<float>(kernel, [&](auto k) {
        add_stored(k, graph, charges, m, Y, n, d, offsets, weights, count, potential, half_gradient,
                   worth(threads, graph.indptr[n]));
    });
}

template <class R>
void field_at(const Kernel &kernel, const double *charges, int m, const R *targets, std::int64_t n_targets, const R *Y,
              std::int64_t n, int d, double *potential, double *half_gradient, int threads) {
    Buffer<R> charge(n * m);
    for (std::int64_t i = 0; i < n * m; ++i) charge[i] = R(charges[i]);
    with_kernel<R>(kernel, [&](auto k) {
        block_sums(targets, n_targets, d, m, n, potential, half_gradient, threads, [&](std::int64_t, BlockSum<R> &sum) {
            for (std::int64_t j = 0; j < n; ++j)
                sum.template add<0>(k, {Y + j * d, 1}, {charge.data + j * m, 1}, R(1));
        });
    });
}

}  // namespace EQ_ISA
}  // namespace eq
