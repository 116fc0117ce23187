// Bindings of neighbours and affinities.
#include "bind/common.hpp"

namespace {

void conditional(const eq::Distances &D, std::int64_t n, const double *perplexities, int scales, float *P,
                 std::uint8_t *saturated, int threads) {
    backend().conditional_f32(D, n, perplexities, scales, P, saturated, threads);
}
void conditional(const eq::Distances &D, std::int64_t n, const double *perplexities, int scales, double *P,
                 std::uint8_t *saturated, int threads) {
    backend().conditional_f64(D, n, perplexities, scales, P, saturated, threads);
}

template <class R> void bind_conditional(nb::module_ &m) {
    using Perplexities = In<double, nb::shape<-1>>;
    using Saturated = Out<std::uint8_t, nb::shape<-1>>;
    m.def("conditional_points",
          [](In<double, nb::shape<-1, -1>> X, Perplexities perplexities, Out<R, nb::shape<-1, -1>> P, Saturated saturated,
             int threads) {
              const std::size_t n = X.shape(0);
              require(P.shape(0) == n && P.shape(1) == n && saturated.shape(0) == n, "P must be (n, n) and saturated (n,)");
              nb::gil_scoped_release release;
              eq::Distances D;
              D.points = X.data();
              D.dimension = std::int64_t(X.shape(1));
              conditional(D, std::int64_t(X.shape(0)), perplexities.data(), int(perplexities.shape(0)), P.data(),
                          saturated.data(), threads);
          },
          "X"_a.noconvert(), "perplexities"_a.noconvert(), "P"_a.noconvert(), "saturated"_a.noconvert(), "threads"_a,
          "Rows p_{j|i} (n, n) from points, by Euclidean distance.");
    m.def("conditional_dense",
          [](In<double, nb::shape<-1, -1>> D2, Perplexities perplexities, Out<R, nb::shape<-1, -1>> P,
             Saturated saturated, int threads) {
              const std::size_t n = D2.shape(0);
              require(D2.shape(1) == n && P.shape(0) == n && P.shape(1) == n && saturated.shape(0) == n, "P must be (n, n) and saturated (n,)");
              nb::gil_scoped_release release;
              eq::Distances D;
              D.dense = D2.data();
              conditional(D, std::int64_t(D2.shape(0)), perplexities.data(), int(perplexities.shape(0)), P.data(),
                          saturated.data(), threads);
          },
          "D2"_a.noconvert(), "perplexities"_a.noconvert(), "P"_a.noconvert(), "saturated"_a.noconvert(), "threads"_a,
          "Rows p_{j|i} (n, n) from squared distances.");
    m.def("conditional_sparse",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<double, nb::shape<-1>> D2, Perplexities perplexities,
             Out<R, nb::shape<-1>> P, Saturated saturated, int threads) {
              require_csr(indptr, D2.shape(0), saturated.shape(0));
              require(P.shape(0) == D2.shape(0), "P must have the length of D2");
              nb::gil_scoped_release release;
              eq::Distances D;
              D.indptr = indptr.data();
              D.graph = D2.data();
              conditional(D, std::int64_t(indptr.shape(0)) - 1, perplexities.data(), int(perplexities.shape(0)),
                          P.data(), saturated.data(), threads);
          },
          "indptr"_a.noconvert(), "D2"_a.noconvert(), "perplexities"_a.noconvert(), "P"_a.noconvert(),
          "saturated"_a.noconvert(), "threads"_a, "p_{j|i} over the stored entries of a CSR graph of squared distances.");
}

void memberships(const std::int64_t *indptr, const double *D2, std::int64_t n, double target, double floor, float *W,
                 int threads) {
    backend().memberships_f32(indptr, D2, n, target, floor, W, threads);
}
void memberships(const std::int64_t *indptr, const double *D2, std::int64_t n, double target, double floor, double *W,
                 int threads) {
    backend().memberships_f64(indptr, D2, n, target, floor, W, threads);
}

template <class R> void bind_memberships(nb::module_ &m) {
    m.def("memberships",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<double, nb::shape<-1>> D2, double target, double floor,
             Out<R, nb::shape<-1>> W, int threads) {
              require(indptr.shape(0) > 0, "indptr must have one entry more than there are rows");
              require_csr(indptr, D2.shape(0), indptr.shape(0) - 1);
              require(W.shape(0) == D2.shape(0), "W must have the length of D2");
              nb::gil_scoped_release release;
              memberships(indptr.data(), D2.data(), std::int64_t(indptr.shape(0)) - 1, target, floor, W.data(), threads);
          },
          "indptr"_a.noconvert(), "D2"_a.noconvert(), "target"_a, "floor"_a, "W"_a.noconvert(), "threads"_a,
          "exp(-max(0, r - ρ_i) / σ_i) over the stored entries of a CSR graph of squared distances, of one total per row.");
}

}  // namespace

void bind_affinities(nb::module_ &m) {
    m.def("pair_distances",
          [](In<double, nb::shape<-1, -1>> X, In<std::int32_t, nb::shape<-1, -1>> neighbors,
             Out<double, nb::shape<-1, -1>> d2, int threads) {
              require(neighbors.shape(0) == X.shape(0), "neighbors must be (n, k) for X (n, D)");
              require(d2.shape(0) == X.shape(0) && d2.shape(1) == neighbors.shape(1),
                      "d2 must have the shape of the neighbours, (n, k)");
              nb::gil_scoped_release release;
              backend().pair_distances(X.data(), std::int64_t(X.shape(0)), std::int64_t(X.shape(1)), neighbors.data(),
                                       int(neighbors.shape(1)), d2.data(), threads);
          },
          "X"_a.noconvert(), "neighbors"_a.noconvert(), "d2"_a.noconvert(), "threads"_a,
          "Squared Euclidean distances between each row of X and its listed neighbours.");
    m.def("nearest",
          [](In<float, nb::shape<-1, -1>> dots, In<float, nb::shape<-1>> norms, Out<std::int32_t, nb::shape<-1, -1>> out) {
              require(norms.shape(0) == dots.shape(1) && out.shape(0) == dots.shape(0), "norms and out must fit dots");
              require(out.shape(1) >= 1 && out.shape(1) <= dots.shape(1), "there must be candidates for every neighbour");
              nb::gil_scoped_release release;
              backend().nearest(dots.data(), norms.data(), std::int64_t(dots.shape(0)), std::int64_t(dots.shape(1)),
                          std::int64_t(out.shape(1)), out.data());
          },
          "dots"_a.noconvert(), "norms"_a.noconvert(), "out"_a.noconvert(),
          "The columns of the smallest norm - 2 dot in each row, from the smallest on.");
    bind_conditional<float>(m);
    bind_conditional<double>(m);
    bind_memberships<float>(m);
    bind_memberships<double>(m);
}
