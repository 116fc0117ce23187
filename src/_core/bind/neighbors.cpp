// Bindings of neighbours: distances of listed pairs, and exact ranks.
#include "neighbors/ranks.hpp"

#include <atomic>

#include "bind/common.hpp"
#include "threads/parallel.hpp"

namespace {

// The distances from the points `rows` to all n: approximate values, and what the exact ones are computed from.
struct Request {
    Matrix<double> exact;
    std::int64_t n;
    OutMatrix<float> values;
    Vector<double> shift, slack;
    Vector<std::int64_t> rows;

    std::int64_t m() const { return std::int64_t(rows.shape(0)); }

    template <class Output> void check(const Output &out) const {
        const std::size_t m = rows.shape(0), height = out.shape(0), k = out.shape(1);
        require(n <= std::int64_t(MOST_POINTS), "there must be fewer than 2^31 points");
        require(k >= 1 && std::int64_t(k) < n, "k must be between 1 and n - 1");
        require(values.shape(0) == m && shift.shape(0) == m && slack.shape(0) == m && height == m,
                "values, shift, slack and out must have one row per element of rows");
        require(std::int64_t(values.shape(1)) == eq::tiles(n) * eq::RANK_TILE,
                "values must have n columns, rounded up to a multiple of RANK_TILE");
        for (std::size_t r = 0; r < m; ++r) require(rows(r) >= 0 && rows(r) < n, "rows must be points from 0 to n - 1");
        keep_apart(rows, values, out);
    }

    // Calls act(ranking, row) for each of the rows.
    template <class Source, class Act> void each(Act act) const {
        if (m() == 0) return;
        eq::Ranking<typename Source::Exact> ranking(n, backend());
        for (std::int64_t r = 0; r < m(); ++r) {
            ranking.set_point(Source::exact(*this, r), rows.data()[r],
                              values.data() + r * std::int64_t(values.shape(1)), shift.data()[r], slack.data()[r]);
            act(ranking, r);
        }
    }
};

struct FromPoints {  // exact is X (n, D)
    using Exact = eq::BetweenPoints;
    static void check(const Request &request) {
        require(std::int64_t(request.exact.shape(0)) == request.n, "X must have shape (n, D)");
    }
    static Exact exact(const Request &request, std::int64_t r) {
        return {request.exact.data(), std::int64_t(request.exact.shape(1)), request.rows.data()[r]};
    }
};

struct FromRows {  // exact is D (m, n)
    using Exact = eq::GivenRow;
    static void check(const Request &request) {
        require(std::int64_t(request.exact.shape(0)) == request.m() &&
                    std::int64_t(request.exact.shape(1)) == request.n,
                "the distances must have shape (m, n)");
    }
    static Exact exact(const Request &request, std::int64_t r) { return {request.exact.data() + r * request.n}; }
};

template <class Source> void bind_ranks(nb::module_ &m, const char *nearest, const char *ranks) {
    m.def(
        nearest,
        [](Matrix<double> exact, std::int64_t n, OutMatrix<float> values, Vector<double> shift, Vector<double> slack,
           Vector<std::int64_t> rows, OutMatrix<std::int32_t> out) {
            const Request request{exact, n, values, shift, slack, rows};
            request.check(out);
            Source::check(request);
            const std::int64_t k = std::int64_t(out.shape(1));
            eq::ReleaseGil release;
            request.each<Source>([&](auto &ranking, std::int64_t r) { ranking.nearest(k, out.data() + r * k); });
        },
        array("exact"), "n"_a, array("values"), array("shift"), array("slack"), array("rows"), array("out"),
        "The nearest points of some rows by exact distance, in ascending order; ties are ordered by index.");
    m.def(
        ranks,
        [](Matrix<double> exact, std::int64_t n, OutMatrix<float> values, Vector<double> shift, Vector<double> slack,
           Vector<std::int64_t> rows, Matrix<std::int32_t> others, OutMatrix<std::int32_t> out) {
            const Request request{exact, n, values, shift, slack, rows};
            request.check(out);
            Source::check(request);
            keep_apart(others, values, out);
            require(others.shape(0) == out.shape(0) && others.shape(1) == out.shape(1),
                    "out must have the shape of others");
            const std::int64_t k = std::int64_t(out.shape(1));
            for (std::int64_t t = 0; t < request.m() * k; ++t)
                require(others.data()[t] >= 0 && others.data()[t] < n, "others must be points from 0 to n - 1");
            eq::ReleaseGil release;
            request.each<Source>(
                [&](auto &ranking, std::int64_t r) { ranking.ranks(others.data() + r * k, k, out.data() + r * k); });
        },
        array("exact"), "n"_a, array("values"), array("shift"), array("slack"), array("rows"), array("others"),
        array("out"), "The ranks of other points by exact distance from some rows, starting at 1.");
}

}  // namespace

void bind_neighbors(nb::module_ &m) {
    m.def(
        "pair_distances",
        [](Matrix<double> X, Matrix<std::int32_t> neighbors, Vector<std::int32_t> rows, OutMatrix<double> distances,
           int threads, bool squared) {
            const std::size_t n = X.shape(0), k = neighbors.shape(1);
            require(neighbors.shape(0) == n, "neighbors must have shape (n, k) for X (n, D)");
            require(distances.shape(0) == n && distances.shape(1) == k,
                    "distances must have the shape of neighbors, (n, k)");
            require(k <= MOST_COLUMNS, "neighbors must have fewer than 2^31 columns");
            const std::int32_t *const listed = neighbors.data(), *const chosen = rows.data();
            std::atomic<bool> rows_valid{true}, all_valid{true};
            eq::parallel_for(std::int64_t(rows.shape(0)), 1024, threads, [&](std::int64_t first, std::int64_t last, int) {
                bool valid = true;
                for (std::int64_t t = first; t < last; ++t) {
                    if (chosen[t] < 0 || std::size_t(chosen[t]) >= n) {
                        rows_valid = false;
                        return;
                    }
                    const std::int32_t *const row = listed + std::size_t(chosen[t]) * k;
                    for (std::size_t s = 0; s < k; ++s) valid &= row[s] >= 0 && std::size_t(row[s]) < n;
                }
                if (!valid) all_valid = false;
            });
            require(rows_valid, "rows must be rows of X, from 0 to n - 1");
            require(all_valid, "neighbors must be rows of X, from 0 to n - 1");
            keep_apart(neighbors, distances);
            keep_apart(rows, distances);
            eq::ReleaseGil release;
            backend().pair_distances(data_rows(X), neighbors.data(), int(k), rows.data(), std::int64_t(rows.shape(0)),
                                     squared, distances.data(), threads);
        },
        array("X"), array("neighbors"), array("rows"), array("distances"), "threads"_a,
        "squared"_a = true,
        "Euclidean distances (n, k) between the given rows of X and their listed neighbours, or their squares.");
    bind_ranks<FromPoints>(m, "nearest_of_points", "ranks_of_points");
    bind_ranks<FromRows>(m, "nearest_of_rows", "ranks_of_rows");
}
