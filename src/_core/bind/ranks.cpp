// Bindings of orders by distance: the nearest points, and ranks.
#include "bind/common.hpp"
#include "neighbors/ranks.hpp"

namespace {

using Floats = Out<float, nb::shape<-1, -1>>;
using Numbers = In<double, nb::shape<-1, -1>>;
using Column = In<double, nb::shape<-1>>;
using Rows = In<std::int64_t, nb::shape<-1>>;

// What some points, `rows`, see of all n; see eq::View.
struct Sight {
    Numbers exact;
    std::int64_t n;
    Floats values;
    Column shift, slack;
    Rows rows;

    std::int64_t m() const { return std::int64_t(rows.shape(0)); }

    void check(std::size_t height, std::size_t k) const {
        const std::size_t m = rows.shape(0), groups = std::size_t(eq::tiles(n) * eq::GROUP);
        require(values.shape(0) == m && shift.shape(0) == m && slack.shape(0) == m && height == m,
                "the arrays must have an entry for each of the rows");
        require(values.shape(1) == groups * eq::GROUP, "values must be whole tiles");
        require(k >= 1 && std::int64_t(k) < n, "k must be between 1 and n - 1");
        for (std::size_t r = 0; r < m; ++r)
            require(rows.data()[r] >= 0 && rows.data()[r] < n, "rows must be numbers of points");
    }

    // Calls act(view, row) for each of the rows.
    template <class Source, class Act> void each(Act act) const {
        eq::View<typename Source::Exact> view(n, backend());
        for (std::int64_t r = 0; r < m(); ++r) {
            view.look(Source::exact(*this, r), rows.data()[r], values.data() + r * std::int64_t(values.shape(1)),
                      shift.data()[r], slack.data()[r]);
            act(view, r);
        }
    }
};

struct FromPoints {  // exact is X (n, D)
    using Exact = eq::BetweenPoints;
    static void check(const Sight &sight) { require(std::int64_t(sight.exact.shape(0)) == sight.n, "X must be (n, D)"); }
    static Exact exact(const Sight &sight, std::int64_t r) {
        return {sight.exact.data(), std::int64_t(sight.exact.shape(1)), sight.rows.data()[r]};
    }
};

struct FromRows {  // exact is D (m, n)
    using Exact = eq::GivenRow;
    static void check(const Sight &sight) {
        require(std::int64_t(sight.exact.shape(0)) == sight.m() && std::int64_t(sight.exact.shape(1)) == sight.n,
                "the distances must be (m, n)");
    }
    static Exact exact(const Sight &sight, std::int64_t r) { return {sight.exact.data() + r * sight.n}; }
};

template <class Source> void bind_order(nb::module_ &m, const char *nearest, const char *ranks) {
    m.def(
        nearest,
        [](Numbers exact, std::int64_t n, Floats values, Column shift, Column slack, Rows rows,
           Out<std::int32_t, nb::shape<-1, -1>> out) {
            const Sight sight{exact, n, values, shift, slack, rows};
            sight.check(out.shape(0), out.shape(1));
            Source::check(sight);
            const std::int64_t k = std::int64_t(out.shape(1));
            nb::gil_scoped_release release;
            sight.each<Source>([&](auto &view, std::int64_t r) { view.nearest(k, out.data() + r * k); });
        },
        "exact"_a.noconvert(), "n"_a, "values"_a.noconvert(), "shift"_a.noconvert(),
        "slack"_a.noconvert(), "rows"_a.noconvert(), "out"_a.noconvert(),
        "The points nearest to some rows by exact distance, from the nearest on, equally near ones by number.");
    m.def(
        ranks,
        [](Numbers exact, std::int64_t n, Floats values, Column shift, Column slack, Rows rows,
           In<std::int32_t, nb::shape<-1, -1>> others, Out<std::int32_t, nb::shape<-1, -1>> out) {
            const Sight sight{exact, n, values, shift, slack, rows};
            sight.check(out.shape(0), out.shape(1));
            Source::check(sight);
            require(others.shape(0) == out.shape(0) && others.shape(1) == out.shape(1), "out must fit the others");
            const std::int64_t k = std::int64_t(out.shape(1));
            for (std::int64_t t = 0; t < sight.m() * k; ++t)
                require(others.data()[t] >= 0 && others.data()[t] < n, "others must be numbers of points");
            nb::gil_scoped_release release;
            sight.each<Source>(
                [&](auto &view, std::int64_t r) { view.ranks(others.data() + r * k, k, out.data() + r * k); });
        },
        "exact"_a.noconvert(), "n"_a, "values"_a.noconvert(), "shift"_a.noconvert(),
        "slack"_a.noconvert(), "rows"_a.noconvert(), "others"_a.noconvert(), "out"_a.noconvert(),
        "The ranks, from 1, that other points have by exact distance from some rows.");
}

}  // namespace

void bind_ranks(nb::module_ &m) {
    bind_order<FromPoints>(m, "nearest_of_points", "ranks_of_points");
    bind_order<FromRows>(m, "nearest_of_rows", "ranks_of_rows");
}
