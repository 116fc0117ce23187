// Bindings of a distance over columns: nearest rows, and distances of listed pairs.
#include "bind/common.hpp"

namespace {

using MixedTiles = In<float, nb::shape<-1, -1, eq::MIXED_TILE>>;

eq::MixedColumns mixed_columns(const Matrix<double> &base, const Vector<double> &weights,
                               const Vector<std::uint8_t> &kinds, double none) {
    const eq::Points<double> rows = data_rows(base);
    require(std::int64_t(weights.shape(0)) == rows.d && std::int64_t(kinds.shape(0)) == rows.d,
            "weights and kinds must have one element per column");
    for (std::size_t c = 0; c < kinds.shape(0); ++c) require(kinds(c) <= eq::CATEGORY, "kinds must be 0, 1 or 2");
    return {rows.d, weights.data(), kinds.data(), none};
}

}  // namespace

void bind_mixed(nb::module_ &m) {
    m.def(
        "mixed_nearest",
        [](MixedTiles base, std::int64_t n, Matrix<float> queries, Vector<float> weights, Vector<std::int64_t> sizes,
           float none, std::int64_t self, OutMatrix<std::int32_t> out, int threads) {
            const eq::Points<float> Q = data_rows(queries);
            const std::int64_t tiles = std::int64_t(base.shape(0)), k = std::int64_t(out.shape(1));
            require(n >= 1 && n <= std::int64_t(MOST_POINTS) && (n + eq::MIXED_TILE - 1) / eq::MIXED_TILE == tiles,
                    "base must have n rows in tiles");
            require(std::int64_t(base.shape(1)) == Q.d && std::int64_t(weights.shape(0)) == Q.d,
                    "base, queries and weights must have the same columns");
            require(sizes.shape(0) == 6, "sizes must have six elements");
            std::int64_t total = 0;
            for (int t = 0; t < 6; ++t) {
                require(sizes(t) >= 0 && sizes(t) <= Q.d, "sizes must be numbers of columns");
                total += sizes(t);
            }
            require(total == Q.d, "the sum of sizes must be the number of columns");
            require(self >= -1 && self <= n, "self must be a row, or -1");
            require(std::int64_t(out.shape(0)) == Q.n, "out must have one row per query");
            require(k >= 1 && k <= n - (self >= 0), "k must be between 1 and the number of other rows");
            require(self < 0 || self + Q.n <= n, "the queries must be rows of base");
            keep_apart(sizes, out);
            const eq::MixedSearch search{base.data(), Q.data, weights.data(), sizes.data(), none, n, Q.n, k, self};
            eq::ReleaseGil release;
            backend().mixed_nearest(search, out.data(), threads);
        },
        array("base"), "n"_a, array("queries"), array("weights"), array("sizes"), "none"_a, "self"_a, array("out"), "threads"_a,
        "The k nearest rows of every query by a distance over columns, compared in float32; -1 where a distance"
        " is NaN or infinite.");
    m.def(
        "mixed_distances",
        [](Matrix<double> queries, Matrix<double> base, Vector<double> weights, Vector<std::uint8_t> kinds,
           double none, Matrix<std::int32_t> found, OutMatrix<double> out, int threads) {
            const eq::MixedColumns columns = mixed_columns(base, weights, kinds, none);
            require(queries.shape(1) == base.shape(1), "queries and base must have the same columns");
            require(queries.shape(0) <= MOST_POINTS, "there must be fewer than 2^31 queries");
            require(found.shape(0) == out.shape(0) && found.shape(1) == out.shape(1) &&
                        out.shape(0) == queries.shape(0),
                    "found and out must have one row per query");
            bool valid = true;
            const std::int32_t n = std::int32_t(base.shape(0));
            for (std::size_t t = 0; t < found.size(); ++t) valid &= found.data()[t] >= 0 && found.data()[t] < n;
            require(valid, "found must be rows of base");
            keep_apart(found, out);
            const std::int64_t width = std::int64_t(out.shape(1));
            if (out.size() == 0) return;
            const eq::MixedPairs pairs{queries.data(), base.data(), found.data(), std::int64_t(out.shape(0)), width};
            eq::ReleaseGil release;
            backend().mixed_distances(columns, pairs, out.data(), threads);
        },
        array("queries"), array("base"), array("weights"), array("kinds"), "none"_a, array("found"), array("out"),
        "threads"_a, "The distances over columns from each query to the rows that it lists.");
    m.def(
        "mixed_block",
        [](Matrix<double> queries, Matrix<double> base, Vector<double> weights, Vector<std::uint8_t> kinds,
           double none, OutMatrix<double> out, int threads) {
            const eq::MixedColumns columns = mixed_columns(base, weights, kinds, none);
            require(queries.shape(1) == base.shape(1), "queries and base must have the same columns");
            require(out.shape(0) == queries.shape(0) && out.shape(1) == base.shape(0),
                    "out must have one row per query and one column per row of base");
            require(queries.shape(0) <= MOST_POINTS, "there must be fewer than 2^31 queries");
            if (out.size() == 0) return;
            const eq::MixedPairs pairs{queries.data(), base.data(), nullptr, std::int64_t(out.shape(0)),
                                       std::int64_t(out.shape(1))};
            eq::ReleaseGil release;
            backend().mixed_distances(columns, pairs, out.data(), threads);
        },
        array("queries"), array("base"), array("weights"), array("kinds"), "none"_a, array("out"), "threads"_a,
        "The distances over columns from each query to all rows.");
}
