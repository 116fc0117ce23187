// Bindings of the neighbour search: points in panels, nearest points in groups, and cells around centres.
#include "neighbors/cells.hpp"

#include "bind/common.hpp"

namespace {

using PanelData = In<float, nb::shape<-1, -1, eq::PANEL>>;
using PanelNorms = In<float, nb::shape<-1, eq::PANEL>>;
using PanelIds = In<std::int32_t, nb::shape<-1, eq::PANEL>>;
using OutPanelData = Out<float, nb::shape<-1, -1, eq::PANEL>>;
using OutPanelNorms = Out<float, nb::shape<-1, eq::PANEL>>;

// Checks the starts of groups among `size` points.
void check_ends(const Vector<std::int64_t> &ends, std::int64_t groups, std::int64_t size) {
    require(std::int64_t(ends.shape(0)) == groups + 1, "ends must have one element more than there are groups");
    for (std::int64_t g = 0; g < groups; ++g)
        require(ends(g) >= 0 && ends(g) <= ends(g + 1), "ends must not be negative nor decrease");
    require(ends(groups) <= size, "ends must not exceed the number of points");
}

eq::ListedCells listed_cells(const Matrix<float> &centres, const Matrix<std::int32_t> &listed, const eq::Csr &members,
                             const Vector<std::int64_t> &ends) {
    const eq::Points<float> C = data_rows(centres);
    require(members.rows == C.n, "members must have one row per centre");
    require(members.columns == std::int64_t(listed.shape(0)), "listed must have one row per query");
    require(listed.shape(1) <= MOST_POINTS / 2 && C.n <= std::int64_t(MOST_POINTS / 2), "there are too many cells");
    bool valid = true;
    for (std::size_t t = 0; t < listed.size(); ++t) valid &= listed.data()[t] >= 0 && listed.data()[t] < C.n;
    require(valid, "listed must be cells, from 0 to their number - 1");
    check_ends(ends, C.n, std::numeric_limits<std::int64_t>::max());
    return {C, listed.data(), std::int64_t(listed.shape(1)), members.indices, members.indptr, ends.data()};
}

void bind_panels(nb::module_ &m) {
    m.def(
        "pack_panels",
        [](Matrix<float> X, PanelIds ids, OutPanelData data, OutPanelNorms norms, int threads) {
            const eq::Points<float> points = data_rows(X);
            require(data.shape(0) == ids.shape(0) && norms.shape(0) == ids.shape(0),
                    "data and norms must have as many panels as ids");
            require(data.shape(1) == X.shape(1), "data must have shape (panels, D, PANEL) for X (n, D)");
            for (std::size_t t = 0; t < ids.size(); ++t)
                require(ids.data()[t] >= -1 && ids.data()[t] < points.n, "ids must be rows of X, or -1");
            keep_apart(ids, data, norms);
            eq::ReleaseGil release;
            backend().pack_panels(points, ids.data(), std::int64_t(ids.shape(0)), data.data(), norms.data(), threads);
        },
        array("X"), array("ids"), array("data"), array("norms"), "threads"_a,
        "Copy points to panels, and compute their squared norms; the norm of id -1 is infinite.");
    m.def(
        "nearest_in_groups",
        [](PanelData data, PanelNorms norms, PanelIds ids, Vector<std::int64_t> ends, Matrix<float> queries,
           Vector<std::int32_t> self, const eq::Csr &members, const eq::Csr &near, std::int64_t first,
           std::int64_t last, bool sorted, OutMatrix<std::int32_t> out, int threads) {
            const eq::Points<float> Q = data_rows(queries);
            const std::size_t panels = data.shape(0);
            require(data.shape(1) == queries.shape(1), "queries must have as many columns as the points");
            require(norms.shape(0) == panels && ids.shape(0) == panels && panels <= MOST_POINTS,
                    "norms and ids must have as many panels as data");
            require(members.columns == Q.n, "members must have one column per query");
            require(near.rows == members.rows, "near must have as many rows as members");
            require(0 <= first && first <= last && last <= members.entries(),
                    "first and last must be entries of members");
            check_ends(ends, near.columns, std::int64_t(panels) * eq::PANEL);
            require(self.shape(0) == 0 || std::int64_t(self.shape(0)) == Q.n,
                    "self must be empty or have one element per query");
            require(std::int64_t(out.shape(0)) == Q.n, "out must have one row per query");
            require(out.shape(1) >= 1 && out.shape(1) <= MOST_POINTS, "k must be between 1 and 2^31 - 1");
            keep_apart(members, out);
            keep_apart(near, out);
            keep_apart(ends, out);
            keep_apart(self, out);
            const eq::Panels points{data.data(), norms.data(), ids.data(), std::int64_t(panels), Q.d};
            const eq::GroupSearch search{Q,
                                         self.shape(0) == 0 ? nullptr : self.data(),
                                         members.indptr,
                                         members.indices,
                                         near.indptr,
                                         near.indices,
                                         ends.data(),
                                         members.rows,
                                         first,
                                         last,
                                         std::int64_t(out.shape(1)),
                                         sorted};
            eq::ReleaseGil release;
            backend().nearest_in_groups(points, search, out.data(), threads);
        },
        array("data"), array("norms"), array("ids"), array("ends"), array("queries"), array("self"), "members"_a,
        "near"_a, "first"_a, "last"_a, "sorted"_a, array("out"), "threads"_a,
        "The ids of the k nearest points of entries first to last - 1 of members, in the groups of points that near lists.");
}

}  // namespace

void bind_cells(nb::module_ &m) {
    bind_panels(m);
    m.def(
        "group_means",
        [](Matrix<float> X, const eq::Csr &members, OutMatrix<float> means, int threads) {
            const eq::Points<float> points = data_rows(X);
            require(members.columns == points.n, "members must have one column per row of X");
            require(std::int64_t(means.shape(0)) == members.rows && means.shape(1) == X.shape(1),
                    "means must have one row per group and the columns of X");
            keep_apart(members, means);
            eq::ReleaseGil release;
            eq::group_means(points, members.indices, members.indptr, members.rows, means.data(), threads);
        },
        array("X"), "members"_a, array("means"), "threads"_a,
        "The means of groups of rows; the mean of an empty group is left as it is.");
    m.def(
        "listed_distances",
        [](Matrix<float> X, Matrix<float> queries, Matrix<std::int32_t> listed, OutMatrix<float> d2, int threads) {
            const eq::Points<float> points = data_rows(X), Q = data_rows(queries);
            require(points.d == Q.d, "queries must have as many columns as X");
            require(std::int64_t(listed.shape(0)) == Q.n && d2.shape(0) == listed.shape(0) &&
                        d2.shape(1) == listed.shape(1),
                    "listed and d2 must have shape (m, k) for m queries");
            for (std::size_t t = 0; t < listed.size(); ++t)
                require(listed.data()[t] >= 0 && listed.data()[t] < points.n, "listed must be rows of X");
            keep_apart(listed, d2);
            eq::ReleaseGil release;
            eq::listed_distances(points, Q, listed.data(), std::int64_t(listed.shape(1)), d2.data(), threads);
        },
        array("X"), array("queries"), array("listed"), array("d2"), "threads"_a,
        "Squared distances between each query and its listed rows of X.");
    m.def(
        "cell_ranks",
        [](Matrix<float> centres, Matrix<std::int32_t> listed, const eq::Csr &members, Vector<std::int64_t> ends,
           Vector<std::int32_t> cells, OutMatrix<std::int32_t> ranks, int threads) {
            const eq::ListedCells lists = listed_cells(centres, listed, members, ends);
            require(ranks.shape(0) == cells.shape(0) && std::int64_t(ranks.shape(1)) == lists.cells(),
                    "ranks must have a row for each of the cells, and a column for every cell");
            for (std::size_t t = 0; t < cells.shape(0); ++t)
                require(cells(t) >= 0 && cells(t) < lists.cells(), "cells must be from 0 to their number - 1");
            keep_apart(members, ranks);
            keep_apart(listed, ranks);
            keep_apart(ends, ranks);
            keep_apart(cells, ranks);
            eq::ReleaseGil release;
            eq::parallel_for(std::int64_t(cells.shape(0)), 1, threads, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t t = first; t < last; ++t)
                    lists.ranks_from(cells.data()[t], std::int32_t(lists.cells() + lists.width),
                                     ranks.data() + t * lists.cells());
            });
        },
        array("centres"), array("listed"), "members"_a, array("ends"), array("cells"), array("ranks"), "threads"_a,
        "The rank of every cell seen from some cells.");
    m.def(
        "cells_in_reach",
        [](Matrix<float> centres, Matrix<std::int32_t> listed, const eq::Csr &members, Vector<std::int64_t> ends,
           std::int32_t count, std::int64_t least, OutVector<std::int64_t> indptr, OutVector<std::int32_t> indices,
           int threads) {
            const eq::ListedCells lists = listed_cells(centres, listed, members, ends);
            require(std::int64_t(indptr.shape(0)) == lists.cells() + 1,
                    "indptr must have one element more than there are cells");
            keep_apart(members, indptr, indices);
            keep_apart(listed, indptr, indices);
            keep_apart(ends, indptr, indices);
            keep_apart(indptr, indices);
            const bool counts_only = indices.shape(0) == 0;
            std::int64_t *const p = indptr.data(), size = std::int64_t(indices.shape(0));
            if (!counts_only) check_ends(Vector<std::int64_t>(indptr), lists.cells(), size);
            else std::fill(p, p + lists.cells() + 1, 0);
            eq::ReleaseGil release;
            eq::each_reached(lists, count, least, threads, [&](std::int64_t cell, const auto &found) {
                if (counts_only) p[cell + 1] = std::int64_t(found.size());
                else if (std::int64_t(found.size()) == p[cell + 1] - p[cell])
                    std::copy(found.begin(), found.end(), indices.data() + p[cell]);
                else throw std::invalid_argument("indptr must be the result of a call with empty indices");
            });
            if (counts_only)
                for (std::int64_t cell = 0; cell < lists.cells(); ++cell) p[cell + 1] += p[cell];
        },
        array("centres"), array("listed"), "members"_a, array("ends"), "count"_a, "least"_a, array("indptr"),
        array("indices"), "threads"_a,
        "The cells of rank below count seen from each cell, and further ones until they have `least` points. With empty "
        "indices, only indptr is computed.");
}
