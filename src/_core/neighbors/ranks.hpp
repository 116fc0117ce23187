// Exact neighbours and ranks by distance from a point. Approximate distances in float32, within `slack` of the exact
// ones, decide where they can; exact distances in float64 decide the rest. So the order is that of the exact distances,
// however the approximate ones were rounded. Ties are ordered by index.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "ops.hpp"

namespace eq {

// Squared distances between points X (n, dimension), summed in eight partial sums.
struct BetweenPoints {
    const double *X;
    std::int64_t dimension, i;
    double operator()(std::int64_t l) const {
        const double *a = X + i * dimension, *b = X + l * dimension;
        double lanes[8] = {};
        std::int64_t c = 0;
        for (; c + 8 <= dimension; c += 8)
            for (int t = 0; t < 8; ++t) lanes[t] += (a[c + t] - b[c + t]) * (a[c + t] - b[c + t]);
        for (int t = 0; c < dimension; ++c, ++t) lanes[t] += (a[c] - b[c]) * (a[c] - b[c]);
        return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    }
};

// Precomputed distances (n).
struct GivenRow {
    const double *row;
    double operator()(std::int64_t l) const { return row[l]; }
};

// Approximate distances, minus a shift, are stored in tiles of 64. A tile is 8 groups; a group is every eighth point of
// the tile. The minimum of each group allows distant groups to be skipped without reading their points.
constexpr std::int64_t GROUP = 8, TILE_OF_GROUPS = GROUP * GROUP;
static_assert(TILE_OF_GROUPS == RANK_TILE, "Python allocates tiles of RANK_TILE");

inline std::int64_t tiles(std::int64_t n) { return (n + TILE_OF_GROUPS - 1) / TILE_OF_GROUPS; }

// The distances from one point to all others: `exact` computes them, and `values` + shift are within `slack` of them.
template <class Exact> class Ranking {
public:
    Ranking(std::int64_t n_, const Backend &select_)
        : n(n_), select(select_), groups(tiles(n) * GROUP), near(std::size_t(n + GROUP)), minima(std::size_t(groups)),
          listed(std::size_t(groups * GROUP)) {}

    // Sets the point to `self`. Of its values (tiles · 64), its own and the padding become infinite.
    void set_point(Exact exact_, std::int64_t self, float *values_, double shift_, double slack_) {
        exact = exact_;
        values = values_;
        shift = shift_;
        slack = slack_;
        std::fill(values_ + n, values_ + groups * GROUP, INF);
        values_[self] = INF;
    }

    // The k nearest in ascending order; k < n.
    void nearest(std::int64_t k, std::int32_t *out) {
        places.clear();
        find_minima();
        const float limit = std::nextafter(std::min(bound(k), std::numeric_limits<float>::max()), INF);
        const std::int64_t size = select.between(values, groups * GROUP, -INF, limit, listed.data());
        for (std::int64_t t = 0; t < size; ++t) add(listed[std::size_t(t)], 0);
        if (std::int64_t(places.size()) < k) throw std::invalid_argument("too few approximate distances are finite");
        std::nth_element(places.begin(), places.begin() + (k - 1), places.end());
        std::sort(places.begin(), places.begin() + k);
        for (std::int64_t t = 0; t < k; ++t) out[t] = places[std::size_t(t)].l;
    }

    // The ranks of k others among all points, starting at 1.
    void ranks(const std::int32_t *others, std::int64_t k, std::int32_t *out) {
        places.clear();
        for (std::int64_t t = 0; t < k; ++t) add(others[t], t);
        if (k <= FEW) ranks_of_few(out);
        else ranks_of_many(k, out);
    }

private:
    static constexpr float INF = std::numeric_limits<float>::infinity();
    static constexpr std::int64_t FEW =
        24;  // up to this many ranks, points are counted for each rank separately; chosen

    void ranks_of_few(std::int32_t *out) {
        const std::size_t k = places.size();
        limits.resize(2 * k);
        counts.resize(2 * k);
        for (std::size_t b = 0; b < k; ++b) {
            limits[b] = -up(-(places[b].d - shift - slack));  // below it, a point is certainly nearer
            limits[k + b] = std::nextafter(up(places[b].d - shift + slack), INF);  // from it on, certainly farther
        }
        select.count_below(values, groups * GROUP, limits.data(), std::int64_t(2 * k), counts.data());
        for (std::size_t b = 0; b < k; ++b) {
            std::int32_t rank = counts[b] + 1;
            if (counts[k + b] - counts[b] > 1) {  // besides the point itself
                const std::int64_t size =
                    select.between(values, groups * GROUP, limits[b], limits[k + b], listed.data());
                for (std::int64_t t = 0; t < size; ++t)
                    rank += Place{exact(listed[std::size_t(t)]), listed[std::size_t(t)], 0} < places[b];
            }
            out[places[b].t] = rank;
        }
    }

    void ranks_of_many(std::int64_t k, std::int32_t *out) {
        std::sort(places.begin(), places.end());
        find_minima();
        int levels = 0;
        while ((std::int64_t(1) << levels) <= k) ++levels;
        const std::int64_t width = std::int64_t(1) << levels;
        above.assign(std::size_t(width), INF);  // above it, a point is certainly farther
        below.assign(std::size_t(width), INF);  // below it, certainly nearer
        counts.assign(std::size_t(width), 0);   // of points before the first, between the first and the second, …
        for (std::size_t b = 0; b < std::size_t(k); ++b) {
            above[b] = up(places[b].d - shift + slack);
            below[b] = -up(-(places[b].d - shift - slack));
        }
        const std::int64_t size = gather(above[std::size_t(k - 1)]);
        for (std::int64_t first = 0; first < size; first += GROUP) {
            const Near *eight = near.data() + first;
            std::int32_t p[GROUP] = {};  // how many are certainly nearer: binary search, eight at a time
            for (int level = levels - 1; level >= 0; --level) {
                const float *middle = above.data() + (std::int64_t(1) << level) - 1;
                for (int e = 0; e < GROUP; ++e) p[e] += std::int32_t(middle[p[e]] < eight[e].value) << level;
            }
            for (int e = 0; e < GROUP && first + e < size; ++e)
                ++counts[std::size_t(eight[e].value < below[std::size_t(p[e])] ? p[e] : places_up_to(eight[e].l))];
        }
        std::int32_t rank = 1;
        for (std::size_t b = 0; b < std::size_t(k); ++b) {
            rank += counts[b];
            out[places[b].t] = rank;
        }
    }

    struct Place {
        double d;
        std::int32_t l, t;  // the point, and its position in the request
        bool operator<(const Place &other) const { return d < other.d || (d == other.d && l < other.l); }
    };

    struct Near {
        float value;
        std::int32_t l;
    };

    void add(std::int64_t l, std::int64_t t) {
        const double d = exact(l);
        if (std::isnan(d)) throw std::invalid_argument("an exact distance is NaN");  // it cannot be ordered
        places.push_back({d, std::int32_t(l), std::int32_t(t)});
    }

    std::int64_t places_up_to(std::int64_t l) const {
        const Place place{exact(l), std::int32_t(l), 0};
        return std::upper_bound(places.begin(), places.end(), place) - places.begin();
    }

    static float up(double x) {  // the smallest float that is not below x
        const float f = float(x);
        return double(f) < x ? std::nextafter(f, INF) : f;
    }

    void find_minima() { select.tile_minima(values, groups / GROUP, minima.data()); }

    // An upper bound for the values of the k nearest: the k-th smallest value plus twice the slack. If there are 4 k
    // groups or more, the k-th smallest of their minima is hardly larger than that of all values.
    float bound(std::int64_t k) {
        float kth;
        if (4 * k <= TILE_OF_GROUPS && TILE_OF_GROUPS < groups) {
            float lowest[TILE_OF_GROUPS];
            std::copy(minima.begin(), minima.begin() + TILE_OF_GROUPS, lowest);
            for (std::int64_t first = TILE_OF_GROUPS; first < groups; first += GROUP)  // groups of groups, 64 of them
                for (int g = 0; g < GROUP; ++g) {
                    float &low = lowest[first % TILE_OF_GROUPS + g];
                    low = std::min(low, minima[std::size_t(first + g)]);
                }
            kth = kth_smallest(lowest, TILE_OF_GROUPS, k);
        } else if (4 * k <= groups) {
            kth = kth_smallest(minima.data(), groups, k);
        } else {
            kth = kth_smallest(values, groups * GROUP, k);
        }
        return up(double(kth) + 2 * slack);
    }

    float kth_smallest(const float *v, std::int64_t size, std::int64_t k) {
        return k <= FEW ? kth_of_few(v, size, k) : kth_of_many(v, size, k);
    }

    // Keeps the k smallest so far in order.
    float kth_of_few(const float *v, std::int64_t size, std::int64_t k) {
        float kept[FEW];
        std::fill(kept, kept + k, INF);
        for (std::int64_t t = 0; t < size; ++t)
            if (v[t] < kept[k - 1]) {
                std::int64_t place = k - 1;
                for (; place > 0 && v[t] < kept[place - 1]; --place) kept[place] = kept[place - 1];
                kept[place] = v[t];
            }
        return kept[k - 1];
    }

    // Keeps up to 4 k of the smallest so far.
    float kth_of_many(const float *v, std::int64_t size, std::int64_t k) {
        smallest.clear();
        float limit = INF;
        const auto shrink = [&] {
            std::nth_element(smallest.begin(), smallest.begin() + (k - 1), smallest.end());
            smallest.resize(std::size_t(k));
            limit = smallest.back();
        };
        for (std::int64_t t = 0; t < size; ++t)
            if (v[t] < limit) {
                smallest.push_back(v[t]);
                if (std::int64_t(smallest.size()) == 4 * k) shrink();
            }
        if (std::int64_t(smallest.size()) >= k) shrink();
        return limit;
    }

    // Lists in `near` the points whose approximate distance is finite and at most the limit; returns their number.
    std::int64_t gather(float limit) {
        limit = std::min(limit, std::numeric_limits<float>::max());
        std::int64_t size = 0;
        for (std::int64_t tile = 0; tile < groups / GROUP; ++tile)
            for (int g = 0; g < GROUP; ++g) {
                if (minima[std::size_t(tile * GROUP + g)] > limit) continue;
                const std::int64_t first = tile * TILE_OF_GROUPS + g;
                for (int e = 0; e < GROUP; ++e) {  // each is written; those that are too far are overwritten
                    near[std::size_t(size)] = {values[first + e * GROUP], std::int32_t(first + e * GROUP)};
                    size += values[first + e * GROUP] <= limit;
                }
            }
        return size;
    }

    const std::int64_t n;
    const Backend &select;
    Exact exact{};
    const float *values = nullptr;
    double shift = 0, slack = 0;
    const std::int64_t groups;
    std::vector<Near> near;
    std::vector<Place> places;
    std::vector<float> minima, above, below, limits, smallest;
    std::vector<std::int32_t> counts, listed;
};

}  // namespace eq
