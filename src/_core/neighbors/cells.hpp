// Cells around centres: the order in which a cell sees the others, which of them its queries are compared with, and the
// means of cells.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "threads/parallel.hpp"
#include "types.hpp"

namespace eq {

// Queries in cells, and the cells nearest to each query, nearest first.
struct ListedCells {
    Points<float> centres;
    const std::int32_t *listed = nullptr;  // (queries, width)
    std::int64_t width = 0;
    const std::int32_t *order = nullptr;   // queries, sorted by cell
    const std::int64_t *starts = nullptr;  // where the queries of each cell start in `order` (cells + 1)
    const std::int64_t *ends = nullptr;    // where the points of each cell start among the points (cells + 1)

    std::int64_t cells() const { return centres.n; }
    std::int64_t size(std::int64_t cell) const { return ends[cell + 1] - ends[cell]; }

    // The rank of cell B seen from cell A is the best rank that a query in A gives to B. Cells that no query in A lists
    // follow in the order of the distance between the centres, the first of them with rank `width`. Writes the ranks of
    // all cells; ranks above `below` become `below`.
    void ranks_from(std::int64_t cell, std::int32_t below, std::int32_t *ranks) const {
        std::fill(ranks, ranks + cells(), below);
        if (below > width) {
            constexpr float INF = std::numeric_limits<float>::infinity();
            std::vector<std::pair<float, std::int32_t>> far(static_cast<std::size_t>(cells()));
            for (std::int64_t b = 0; b < cells(); ++b) {
                float d2 = 0;
                for (int c = 0; c < centres.d; ++c) {
                    const float difference = centres.row(b)[c] - centres.row(cell)[c];
                    d2 += difference * difference;
                }
                far[std::size_t(b)] = {d2 < INF ? d2 : INF, std::int32_t(b)};  // NaN cannot be sorted
            }
            std::sort(far.begin(), far.end());
            for (std::int64_t t = 0; t < std::min<std::int64_t>(cells(), below - width); ++t)
                ranks[far[std::size_t(t)].second] = std::int32_t(width + t);
        }
        const std::int64_t used = std::min<std::int64_t>(below, width);
        for (std::int64_t i = starts[cell]; i < starts[cell + 1]; ++i) {
            const std::int32_t *const row = listed + std::int64_t(order[i]) * width;
            for (std::int64_t rank = 0; rank < used; ++rank)
                ranks[row[rank]] = std::min(ranks[row[rank]], std::int32_t(rank));
        }
    }

    // The cells of rank below `count`, ascending by index. If these have fewer than `least` points, further cells in the
    // order of rank.
    void reached(std::int64_t cell, std::int32_t count, std::int64_t least, std::vector<std::int32_t> &ranks,
                 std::vector<std::int32_t> &found) const {
        found.clear();
        std::int64_t points = 0;
        ranks_from(cell, count, ranks.data());
        for (std::int64_t b = 0; b < cells(); ++b)
            if (ranks[std::size_t(b)] < count) {
                found.push_back(std::int32_t(b));
                points += size(b);
            }
        if (points >= least) return;
        ranks_from(cell, std::int32_t(cells() + width), ranks.data());
        found.resize(std::size_t(cells()));
        for (std::int64_t b = 0; b < cells(); ++b) found[std::size_t(b)] = std::int32_t(b);
        std::stable_sort(found.begin(), found.end(), [&](std::int32_t a, std::int32_t b) {
            return ranks[std::size_t(a)] < ranks[std::size_t(b)];
        });
        std::size_t enough = 0;
        for (points = 0; enough < found.size() && (points < least || ranks[std::size_t(found[enough])] < count); ++enough)
            points += size(found[enough]);
        found.resize(enough);
        std::sort(found.begin(), found.end());
    }
};

// Calls act(cell, cells that it reaches) for each cell that has queries.
template <class Act>
void each_reached(const ListedCells &cells, std::int32_t count, std::int64_t least, int threads, const Act &act) {
    parallel_for(cells.cells(), 4, threads, [&](std::int64_t first, std::int64_t last, int) {
        std::vector<std::int32_t> ranks(static_cast<std::size_t>(cells.cells())), found;
        for (std::int64_t cell = first; cell < last; ++cell)
            if (cells.starts[cell] < cells.starts[cell + 1]) {
                cells.reached(cell, count, least, ranks, found);
                act(cell, found);
            }
    });
}

// The means (groups, d) of rows of X sorted by group; the mean of an empty group is left as it is.
inline void group_means(Points<float> X, const std::int32_t *order, const std::int64_t *starts, std::int64_t groups,
                        float *means, int threads) {
    parallel_for(groups, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
        std::vector<double> sum(static_cast<std::size_t>(X.d));
        for (std::int64_t g = first; g < last; ++g) {
            const std::int64_t size = starts[g + 1] - starts[g];
            if (size == 0) continue;
            std::fill(sum.begin(), sum.end(), 0.0);
            for (std::int64_t i = starts[g]; i < starts[g + 1]; ++i)
                for (int c = 0; c < X.d; ++c) sum[std::size_t(c)] += double(X.row(order[i])[c]);
            for (int c = 0; c < X.d; ++c) means[g * X.d + c] = float(sum[std::size_t(c)] / double(size));
        }
    });
}

// Squared distances d2 (queries, k) between queries and the points X[listed[query, t]].
inline void listed_distances(Points<float> X, Points<float> queries, const std::int32_t *listed, std::int64_t k,
                             float *d2, int threads) {
    parallel_for(queries.n, 4, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t t = first * k; t < last * k; ++t) {
            const float *const q = queries.row(t / k), *const x = X.row(listed[t]);
            float sum = 0;
            for (int c = 0; c < X.d; ++c) sum += (x[c] - q[c]) * (x[c] - q[c]);
            d2[t] = sum;
        }
    });
}

}  // namespace eq
