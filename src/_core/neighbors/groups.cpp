// The k nearest points of every query among the points of nearby groups. Blocks of queries are compared with chunks of
// points by products (panels.hpp); after each chunk, a query keeps its k nearest so far (select.hpp). A query is searched
// by one thread, and its result is the k points with the smallest (distance, id): it depends neither on the number of
// threads nor on the sizes of blocks and chunks. Compiled once per instruction set, like ops.cpp.
#include <cmath>
#include <stdexcept>

#include "neighbors/search.hpp"
#include "neighbors/select.hpp"

namespace eq {
namespace EQ_ISA {

constexpr std::int64_t BLOCK_ROWS = 48;         // queries per block, at most; chosen
constexpr std::int64_t CHUNK = 2048;            // points per chunk: with a block, 400 kB, for the second-level cache
constexpr std::int64_t MOST_KEPT = 1 << 18;     // neighbours kept per block, 2 MB
constexpr float UNSURE = 1e-4f;                 // acceptable rounding error, relative to the k-th squared distance; chosen
constexpr float HALF_ULP = 1.0f / (1 << 24);    // relative error of one rounding

inline std::int64_t block_rows(std::int64_t k) {
    return std::max<std::int64_t>(1, std::min<std::int64_t>(BLOCK_ROWS, MOST_KEPT / k));
}

// Lists the panels that contain the points of groups, each panel once.
struct PanelList {
    const std::int32_t *group, *last;  // the groups left
    const std::int64_t *ends;
    std::int64_t next = 0, end = 0;  // panels left of the groups before

    // Writes up to `most` panels and returns their number.
    std::int64_t fill(std::int32_t *panels, std::int64_t most) {
        std::int64_t size = 0;
        while (size < most) {
            if (next == end) {
                if (group == last) break;
                const std::int64_t from = ends[*group], to = ends[*group + 1];
                ++group;
                if (from == to) continue;
                next = std::max(end, from / PANEL);
                end = std::max(next, (to - 1) / PANEL + 1);
                continue;
            }
            panels[size++] = std::int32_t(next++);
        }
        return size;
    }
};

// The queries of a block, and the nearest points found so far.
class Block {
public:
    explicit Block(std::int64_t k_)
        : k(k_), height(block_rows(k)), values(height * CHUNK, UNINITIALIZED), kept(height * k, UNINITIALIZED),
          kept_ids(height * k, UNINITIALIZED), near(k + CHUNK + 8, UNINITIALIZED),
          minima(CHUNK, UNINITIALIZED), ids(k + CHUNK + 8, UNINITIALIZED), ranked(k + CHUNK, UNINITIALIZED) {}

    void search(const Panels &points, const GroupSearch &search, std::int64_t group, std::int64_t first,
                std::int64_t last, std::int32_t *out) {
        std::int64_t unsure = 0;
        compare<false>(points, search, group, search.order + first, last - first);
        for (std::int64_t r = 0; r < last - first; ++r)
            if (is_unsure(search, r)) again[unsure++] = queries[r];
            else write(search, r, out);
        if (unsure == 0) return;
        compare<true>(points, search, group, again, unsure);
        for (std::int64_t r = 0; r < unsure; ++r) write(search, r, out);
    }

private:
    std::int64_t k, height;
    Buffer<float> values, kept;
    Buffer<std::int32_t> kept_ids;
    Buffer<float> near, minima;  // of one query
    Buffer<std::int32_t> ids;
    Buffer<Ranked> ranked;
    const float *rows[BLOCK_ROWS];
    std::int32_t queries[BLOCK_ROWS], again[BLOCK_ROWS], panels[CHUNK / PANEL];
    std::int32_t positions[CHUNK + 4];
    std::int64_t size[BLOCK_ROWS];  // neighbours kept
    float limit[BLOCK_ROWS];        // the largest of their distances, if there are k
    std::int32_t last[BLOCK_ROWS];  // the largest id at this distance

    template <bool DIFFERENCES>
    void compare(const Panels &points, const GroupSearch &search, std::int64_t group, const std::int32_t *which,
                 std::int64_t m) {
        for (std::int64_t r = 0; r < m; ++r) {
            queries[r] = which[r];
            rows[r] = search.queries.row(which[r]);
            size[r] = 0;
        }
        PanelList list{search.nearby + search.near[group], search.nearby + search.near[group + 1], search.ends};
        for (;;) {
            const std::int64_t count = list.fill(panels, CHUNK / PANEL);
            if (count == 0) break;
            products<DIFFERENCES>(rows, m, points, panels, count, values.data, CHUNK);
            for (std::int64_t r = 0; r < m; ++r)
                keep(r, points.ids, count, search.self == nullptr ? -1 : search.self[queries[r]]);
        }
        for (std::int64_t r = 0; r < m; ++r)
            if (size[r] < k) throw std::invalid_argument("a query has too few distances that are not NaN");
    }

    // Adds the points of `count` panels to the nearest of query r.
    void keep(std::int64_t r, const std::int32_t *all_ids, std::int64_t count, std::int32_t self) {
        const float *const value = values.data + r * CHUNK;
        const std::int64_t columns = count * PANEL;
        std::int64_t found = size[r];
        for (std::int64_t t = 0; t < found; ++t) {
            near[t] = kept[r * k + t];
            ids[t] = kept_ids[r * k + t];
        }
        const std::int64_t listed = found < k ? list_first(value, columns) : list_nearer(value, columns, r, all_ids);
        for (std::int64_t t = 0; t < listed; ++t) {
            const std::int64_t at = positions[t];
            const std::int32_t id = all_ids[std::int64_t(panels[at / PANEL]) * PANEL + at % PANEL];
            near[found] = value[at];
            ids[found] = id;
            found += id != self;
        }
        if (found > k) {
            keep_smallest(near.data, ids.data, found, k, ranked.data);
            found = k;
        }
        if (found == k) {
            limit[r] = largest(near.data, k);
            last[r] = -1;
            for (std::int64_t t = 0; t < k; ++t)
                last[r] = std::max(last[r], near[t] == limit[r] ? ids[t] : -1);
        }
        size[r] = found;
        for (std::int64_t t = 0; t < found; ++t) {
            kept[r * k + t] = near[t];
            kept_ids[r * k + t] = ids[t];
        }
    }

    // Lists the columns that can be among the k nearest.
    std::int64_t list_first(const float *value, std::int64_t columns) {
        const Vector most = broadcast(columns > 2 * k ? bound(value, columns, k + 1, minima.data)  // one is the query
                                                      : std::numeric_limits<float>::max());
        return list_positions(columns, positions, [&](std::int64_t t) { return load(value + t) <= most; });
    }

    // Lists the columns that come before the k-th found so far. Among many equal points these are few.
    std::int64_t list_nearer(const float *value, std::int64_t columns, std::int64_t r, const std::int32_t *all_ids) {
        const Vector most = broadcast(limit[r]);
        const std::int32_t id = last[r];
        const Integers highest{id, id, id, id, id, id, id, id};
        return list_positions(columns, positions, [&](std::int64_t t) {
            Integers eight;
            std::memcpy(&eight, all_ids + std::int64_t(panels[t / PANEL]) * PANEL, sizeof eight);
            const Vector at = load(value + t);
            return (at < most) | ((at == most) & (eight < highest));
        });
    }

    // Whether a query is so much nearer to its neighbours than to the origin that rounding could change the result. The
    // error of a product is about √D roundings of its terms, which add up to 4 ‖q‖² for a near point.
    bool is_unsure(const GroupSearch &search, std::int64_t r) const {
        float own = 0;
        for (int c = 0; c < search.queries.d; ++c) own += rows[r][c] * rows[r][c];
        return 8 * HALF_ULP * std::sqrt(float(search.queries.d)) * own > UNSURE * (own + limit[r]);
    }

    void write(const GroupSearch &search, std::int64_t r, std::int32_t *out) {
        std::int32_t *const row = out + std::int64_t(queries[r]) * k;
        for (std::int64_t t = 0; t < k; ++t) row[t] = kept_ids[r * k + t];
        if (!search.sorted) return;
        for (std::int64_t t = 0; t < k; ++t) ranked[t] = Ranked(kept[r * k + t], row[t]);
        std::sort(ranked.data, ranked.data + k);
        for (std::int64_t t = 0; t < k; ++t) row[t] = ranked[t].column();
    }
};

// Copies the points X[ids] to panels, and computes their squared norms. ids (panels, PANEL) is -1 after the last point.
void pack_panels(Points<float> X, const std::int32_t *ids, std::int64_t panels, float *data, float *norms,
                 int threads) {
    parallel_for(panels, 64, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t p = first; p < last; ++p) {
            float *const panel = data + p * X.d * PANEL;
            for (int t = 0; t < PANEL; ++t) {
                const std::int32_t id = ids[p * PANEL + t];
                for (int c = 0; c < X.d; ++c) panel[c * PANEL + t] = id < 0 ? 0.0f : X.row(id)[c];
            }
            Vector norm{};
            for (int c = 0; c < X.d; ++c) norm += load(panel + c * PANEL) * load(panel + c * PANEL);
            for (int t = 0; t < PANEL; ++t) norms[p * PANEL + t] = ids[p * PANEL + t] < 0 ? INF : norm[t];
        }
    });
}

// Writes the k nearest points of the queries order[first], …, order[last - 1] to rows of out (queries, k).
void nearest_in_groups(const Panels &points, const GroupSearch &search, std::int32_t *out, int threads) {
    struct Task {
        std::int64_t group, first, last;
    };
    const std::int64_t share = (search.last - search.first) / (4 * slots(threads)) + 1;  // some blocks for every thread
    const std::int64_t height = std::min(block_rows(search.k), std::max<std::int64_t>(share, TILE_ROWS));
    Buffer<Task> tasks((search.last - search.first) / height + search.groups + 1, UNINITIALIZED);
    std::int64_t count = 0;
    for (std::int64_t group = 0; group < search.groups; ++group) {
        const std::int64_t first = std::max(search.first, search.starts[group]);
        const std::int64_t m = std::min(search.last, search.starts[group + 1]) - first;
        const std::int64_t blocks = m <= 0 ? 0 : (m - 1) / height + 1;
        for (std::int64_t b = 0; b < blocks; ++b)  // of nearly the same size
            tasks[count++] = {group, first + m * b / blocks, first + m * (b + 1) / blocks};
    }
    if (count == 0) return;
    PerThread<Block> block(int(std::min<std::int64_t>(slots(threads), count)), search.k);
    parallel_for(count, 1, block.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        for (std::int64_t t = first; t < last; ++t)
            block[slot].search(points, search, tasks[t].group, tasks[t].first, tasks[t].last, out);
    });
}

}  // namespace EQ_ISA
}  // namespace eq
