// The rows nearest to each query by a distance over columns (mixed.hpp), by comparing all pairs in float32. Blocks of
// queries are compared with chunks of rows that fit the second-level cache; after each chunk, a query keeps its k nearest
// so far. A query is searched by one thread, and its result is the k rows with the smallest (distance, index): it does not
// depend on the number of threads. Compiled once per instruction set, like ops.cpp.
#include "neighbors/mixed.hpp"

#include <cmath>

#include "neighbors/select.hpp"

namespace eq {
namespace EQ_ISA {

namespace {

constexpr std::int64_t QUERIES = 32;   // queries per block; chosen
constexpr std::int64_t CHUNK = 2048;   // rows per chunk: 40 columns take 330 kB; chosen
constexpr std::int64_t PAIRS_AT_ONCE = 256;  // listed pairs of a query per chunk of a loop; chosen

EQ_INLINE Vector absolute(Vector x) { return bits<Vector>(bits<Integers>(x) & 0x7FFFFFFF); }

EQ_INLINE Vector where(Integers holds, Vector x) { return bits<Vector>(holds & bits<Integers>(x)); }

template <int KIND> EQ_INLINE Vector difference(Vector a, Vector x, Vector w) {
    if constexpr (KIND == ABSOLUTE) return absolute(a - x);
    else if constexpr (KIND == SQUARED) return (a - x) * (a - x);
    else return where(a != x, w);
}

// The sums over the columns so far, for W queries and the 16 rows of a tile.
template <int W> struct Sums {
    Vector sum[W][2], weight[W][2];
};

template <int W, int KIND>
EQ_INLINE void add_complete(Sums<W> &sums, const MixedSearch &search, std::int64_t columns, std::int64_t first,
                            std::int64_t last, const float *tile, const float *queries) {
    for (std::int64_t c = first; c < last; ++c) {
        const Vector a = load(tile + c * MIXED_TILE), b = load(tile + c * MIXED_TILE + 8);
        const Vector w = broadcast(search.weights[c]);
        for (int q = 0; q < W; ++q) {
            const Vector x = broadcast(queries[q * columns + c]);
            sums.sum[q][0] += difference<KIND>(a, x, w);
            sums.sum[q][1] += difference<KIND>(b, x, w);
        }
    }
}

template <int W, int KIND>
EQ_INLINE void add_with_gaps(Sums<W> &sums, const MixedSearch &search, std::int64_t columns, std::int64_t first,
                             std::int64_t last, const float *tile, const float *queries) {
    for (std::int64_t c = first; c < last; ++c) {
        const Vector rows[2] = {load(tile + c * MIXED_TILE), load(tile + c * MIXED_TILE + 8)};
        const Vector w = broadcast(search.weights[c]);
        for (int q = 0; q < W; ++q) {
            const Vector x = broadcast(queries[q * columns + c]);
            for (int v = 0; v < 2; ++v) {
                const Vector apart = rows[v] - x;
                const Integers both = apart == apart;  // not NaN
                sums.sum[q][v] += where(both, difference<KIND>(rows[v], x, w));
                sums.weight[q][v] += where(both, w);
            }
        }
    }
}

// Writes the distances from W queries to the MIXED_TILE rows of one tile: values (W, stride). Without missing values
// these are the sums, whose order is the same.
template <int W>
EQ_INLINE void compare(const MixedSearch &search, std::int64_t columns, float complete, const float *tile,
                       const float *queries, float *values, std::int64_t stride) {
    std::int64_t ends[7] = {0};
    for (int t = 0; t < 6; ++t) ends[t + 1] = ends[t] + search.sizes[t];
    Sums<W> sums;
    for (int q = 0; q < W; ++q)
        for (int v = 0; v < 2; ++v) {
            sums.sum[q][v] = Vector{};
            sums.weight[q][v] = broadcast(complete);
        }
    add_complete<W, ABSOLUTE>(sums, search, columns, ends[0], ends[1], tile, queries);
    add_complete<W, SQUARED>(sums, search, columns, ends[1], ends[2], tile, queries);
    add_complete<W, CATEGORY>(sums, search, columns, ends[2], ends[3], tile, queries);
    const bool gaps = ends[3] < columns;
    if (gaps) {
        add_with_gaps<W, ABSOLUTE>(sums, search, columns, ends[3], ends[4], tile, queries);
        add_with_gaps<W, SQUARED>(sums, search, columns, ends[4], ends[5], tile, queries);
        add_with_gaps<W, CATEGORY>(sums, search, columns, ends[5], ends[6], tile, queries);
    }
    const Vector none = broadcast(search.none);
    for (int q = 0; q < W; ++q)
        for (int v = 0; v < 2; ++v) {
            const Vector weight = sums.weight[q][v], sum = sums.sum[q][v];
            store(values + q * stride + 8 * v, !gaps ? sum : (weight > Vector{} ? sum / weight : none));
        }
}

// The queries of a block, and the nearest rows found so far.
class NearestRows {
public:
    explicit NearestRows(std::int64_t k_)
        : k(k_), room(k + CHUNK), kept(QUERIES * (k + 8), UNINITIALIZED), ids(QUERIES * (k + 8), UNINITIALIZED),
          values(QUERIES * CHUNK, UNINITIALIZED), near(room + 8, UNINITIALIZED), near_ids(room + 8, UNINITIALIZED),
          positions(CHUNK + 8, UNINITIALIZED), ranked(room + 8, UNINITIALIZED) {}

    void search(const MixedSearch &search, std::int64_t columns, float complete, std::int64_t first, std::int64_t last,
                std::int32_t *out) {
        const std::int64_t tiles = (search.n + MIXED_TILE - 1) / MIXED_TILE, step = CHUNK / MIXED_TILE;
        const std::int64_t height = last - first;
        for (std::int64_t q = 0; q < height; ++q) {
            size[q] = 0;
            limit[q] = INF;
        }
        for (std::int64_t tile = 0; tile < tiles; tile += step) {
            const std::int64_t end = std::min(tiles, tile + step);
            measure(search, columns, complete, first, height, tile, end);
            const std::int64_t start = tile * MIXED_TILE, count = std::min(search.n, end * MIXED_TILE) - start;
            for (std::int64_t q = 0; q < height; ++q) keep(search, first, q, start, count);
        }
        for (std::int64_t q = 0; q < height; ++q) {
            std::int32_t *const to = out + (first + q) * k;
            std::fill(to + size[q], to + k, -1);  // only if distances are NaN or infinite
            std::copy(&ids[q * (k + 8)], &ids[q * (k + 8)] + size[q], to);
        }
    }

private:
    const std::int64_t k, room;
    Buffer<float> kept;  // (QUERIES, k + 8): distances of the nearest rows so far
    Buffer<std::int32_t> ids;
    Buffer<float> values;  // (QUERIES, CHUNK)
    Buffer<float> near;
    Buffer<std::int32_t> near_ids, positions;
    Buffer<Ranked> ranked;
    std::int64_t size[QUERIES];
    float limit[QUERIES];

    void measure(const MixedSearch &search, std::int64_t columns, float complete, std::int64_t first,
                 std::int64_t height, std::int64_t tile, std::int64_t end) {
        std::int64_t q = 0;
        for (; q + 4 <= height; q += 4) measure<4>(search, columns, complete, first, q, tile, end);
        for (; q < height; ++q) measure<1>(search, columns, complete, first, q, tile, end);
    }

    template <int W>
    void measure(const MixedSearch &search, std::int64_t columns, float complete, std::int64_t first, std::int64_t q,
                 std::int64_t tile, std::int64_t end) {
        for (std::int64_t t = tile; t < end; ++t)
            compare<W>(search, columns, complete, search.base + t * columns * MIXED_TILE,
                       search.queries + (first + q) * columns, &values[q * CHUNK + (t - tile) * MIXED_TILE], CHUNK);
    }

    // Adds the rows from `start` on that are nearer than the k nearest so far.
    void keep(const MixedSearch &search, std::int64_t first, std::int64_t q, std::int64_t start, std::int64_t count) {
        float *const row = &values[q * CHUNK];
        const std::int64_t whole = (count + MIXED_TILE - 1) / MIXED_TILE * MIXED_TILE;
        std::fill(row + count, row + whole, INF);
        if (search.self >= 0) {
            const std::int64_t own = search.self + first + q - start;
            if (own >= 0 && own < count) row[own] = INF;
        }
        const Vector most = broadcast(limit[q]);
        const std::int64_t added =
            list_positions(whole, positions.data, [&](std::int64_t t) { return load(row + t) < most; });
        if (added == 0) return;
        float *const all = near.data;
        std::int32_t *const all_ids = near_ids.data;
        std::copy(&kept[q * (k + 8)], &kept[q * (k + 8)] + size[q], all);
        std::copy(&ids[q * (k + 8)], &ids[q * (k + 8)] + size[q], all_ids);
        for (std::int64_t t = 0; t < added; ++t) {
            all[size[q] + t] = row[positions[t]];
            all_ids[size[q] + t] = std::int32_t(start + positions[t]);
        }
        std::int64_t total = size[q] + added;
        if (total > k) {
            keep_smallest(all, all_ids, total, k, ranked.data);
            total = k;
        }
        size[q] = total;
        if (total == k) limit[q] = largest(all, k);
        std::copy(all, all + total, &kept[q * (k + 8)]);
        std::copy(all_ids, all_ids + total, &ids[q * (k + 8)]);
    }
};

// The distance of two rows.
double distance(const MixedColumns &columns, const double *a, const double *b) {
    double sum = 0, weight = 0;
    for (std::int64_t c = 0; c < columns.size; ++c) {
        const double apart = a[c] - b[c], w = columns.weights[c];
        const bool both = apart == apart;  // not NaN
        const std::uint8_t kind = columns.kinds[c];
        const double s = kind == CATEGORY ? (apart != 0 ? 1.0 : 0.0) : kind == SQUARED ? apart * apart : std::fabs(apart);
        sum += both ? w * s : 0.0;
        weight += both ? w : 0.0;
    }
    return weight > 0 ? sum / weight : columns.none;
}

}  // namespace

void mixed_nearest(const MixedSearch &search, std::int32_t *out, int threads) {
    std::int64_t full = 0, columns = 0;
    for (int t = 0; t < 6; ++t) {
        columns += search.sizes[t];
        if (t < 3) full = columns;
    }
    float complete = 0;
    for (std::int64_t c = 0; c < full; ++c) complete += search.weights[c];
    PerThread<NearestRows> blocks(threads, search.k);
    const std::int64_t count = (search.m + QUERIES - 1) / QUERIES;
    parallel_for(count, 1, blocks.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        for (std::int64_t b = first; b < last; ++b)
            blocks[slot].search(search, columns, complete, b * QUERIES, std::min(search.m, (b + 1) * QUERIES), out);
    });
}

void mixed_distances(const MixedColumns &columns, const MixedPairs &pairs, double *out, int threads) {
    const std::int64_t C = columns.size, chunk = std::max<std::int64_t>(1, PAIRS_AT_ONCE / pairs.k);
    parallel_for(pairs.m, chunk, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i)
            for (std::int64_t t = 0; t < pairs.k; ++t) {
                const std::int64_t j = pairs.found ? pairs.found[i * pairs.k + t] : t;
                out[i * pairs.k + t] = distance(columns, pairs.queries + i * C, pairs.base + j * C);
            }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
