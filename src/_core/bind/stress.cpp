// Bindings of stress.
#include "bind/common.hpp"

namespace {

double stress_pairs(const eq::Targets &targets, const float *Y, std::int64_t n, int d, double *half_gradient, int threads) {
    return backend().stress_pairs_f32(targets, Y, n, d, half_gradient, threads);
}
double stress_pairs(const eq::Targets &targets, const double *Y, std::int64_t n, int d, double *half_gradient, int threads) {
    return backend().stress_pairs_f64(targets, Y, n, d, half_gradient, threads);
}
double stress_between(const float *delta, const float *weights, const float *Y, std::int64_t n, const float *T,
                      std::int64_t m, int d, double *half_gradient, double *half_gradient_T, int threads) {
    return backend().stress_between_f32(delta, weights, Y, n, T, m, d, half_gradient, half_gradient_T, threads);
}
double stress_between(const float *delta, const float *weights, const double *Y, std::int64_t n, const double *T,
                      std::int64_t m, int d, double *half_gradient, double *half_gradient_T, int threads) {
    return backend().stress_between_f64(delta, weights, Y, n, T, m, d, half_gradient, half_gradient_T, threads);
}
void stress_listed(const eq::Weights &A, const float *delta, const float *Y, std::int64_t n, int d, double *stress,
                   double *half_gradient, int threads) {
    backend().stress_listed_f32(A, delta, Y, n, d, stress, half_gradient, threads);
}
void stress_listed(const eq::Weights &A, const float *delta, const double *Y, std::int64_t n, int d, double *stress,
                   double *half_gradient, int threads) {
    backend().stress_listed_f64(A, delta, Y, n, d, stress, half_gradient, threads);
}

template <class R> void bind_sums(nb::module_ &m) {
    using Rows = In<R, nb::shape<-1, -1>>;
    using Gradient = Out<double, nb::shape<-1, -1>>;
    const auto check = [](const Rows &Y, const Gradient &half_gradient) {
        require(half_gradient.shape(0) == Y.shape(0) && half_gradient.shape(1) == Y.shape(1),
                "half gradients must have the shapes of the maps");
    };
    m.def("stress_stored",
          [check](In<float, nb::shape<-1>> delta, In<float, nb::shape<-1>> weights, Rows Y, Gradient half_gradient,
                  int threads) {
              const std::size_t n = Y.shape(0);
              check(Y, half_gradient);
              require(delta.shape(0) == n * (n - 1) / 2, "delta must be condensed, n (n - 1) / 2 numbers");
              require(weights.shape(0) == 0 || weights.shape(0) == delta.shape(0), "weights must be empty or as delta");
              eq::Targets targets;
              targets.condensed = delta.data();
              targets.weights = weights.shape(0) == 0 ? nullptr : weights.data();
              nb::gil_scoped_release release;
              return stress_pairs(targets, Y.data(), std::int64_t(n), int(Y.shape(1)), half_gradient.data(), threads);
          },
          "delta"_a.noconvert(), "weights"_a.noconvert(), "Y"_a.noconvert(), "half_gradient"_a.noconvert(), "threads"_a,
          "Stress and half its gradient over all pairs i < j, δ condensed; empty `weights` are all 1.");
    m.def("stress_points",
          [check](In<float, nb::shape<-1, -1>> X, Rows Y, Gradient half_gradient, int threads) {
              check(Y, half_gradient);
              require(X.shape(0) == Y.shape(0) && X.shape(1) > 0, "X must be (n, D) for Y (n, d)");
              eq::Targets targets;
              targets.points = X.data();
              targets.dimension = std::int64_t(X.shape(1));
              nb::gil_scoped_release release;
              return stress_pairs(targets, Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1)), half_gradient.data(),
                                  threads);
          },
          "X"_a.noconvert(), "Y"_a.noconvert(), "half_gradient"_a.noconvert(), "threads"_a,
          "The same with δ the Euclidean distances of X (n, D), computed in blocks and not kept.");
    m.def("stress_between",
          [check](In<float, nb::shape<-1, -1>> delta, In<float, nb::shape<-1>> weights, Rows Y, Rows T,
                  Gradient half_gradient, Gradient half_gradient_T, int threads) {
              const std::size_t n = Y.shape(0), m = T.shape(0);
              check(Y, half_gradient);
              check(T, half_gradient_T);
              require(delta.shape(0) == n && delta.shape(1) == m && weights.shape(0) == m && T.shape(1) == Y.shape(1),
                      "delta must be (n, m) and weights (m,) for Y (n, d) and T (m, d)");
              nb::gil_scoped_release release;
              return stress_between(delta.data(), weights.data(), Y.data(), std::int64_t(n), T.data(), std::int64_t(m),
                                    int(Y.shape(1)), half_gradient.data(), half_gradient_T.data(), threads);
          },
          "delta"_a.noconvert(), "weights"_a.noconvert(), "Y"_a.noconvert(), "T"_a.noconvert(),
          "half_gradient"_a.noconvert(), "half_gradient_T"_a.noconvert(), "threads"_a,
          "Stress between points Y and T, δ (n, m), a weight for each of T; half its gradients with respect to both.");
    m.def("stress_listed",
          [check](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
                  In<float, nb::shape<-1>> delta, In<float, nb::shape<-1>> values, Rows Y, Out<double, nb::shape<-1>> stress,
                  Gradient half_gradient, int threads) {
              const std::size_t n = Y.shape(0);
              check(Y, half_gradient);
              require_csr(indptr, indices.shape(0), n);
              require(delta.shape(0) == indices.shape(0) && values.shape(0) == indices.shape(0) && stress.shape(0) == n,
                      "delta and values must be as indices, and stress (n,)");
              eq::Weights A = weights(values.data());
              A.indptr = indptr.data();
              A.indices = indices.data();
              nb::gil_scoped_release release;
              stress_listed(A, delta.data(), Y.data(), std::int64_t(n), int(Y.shape(1)), stress.data(),
                            half_gradient.data(), threads);
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "delta"_a.noconvert(), "values"_a.noconvert(),
          "Y"_a.noconvert(), "stress"_a.noconvert(), "half_gradient"_a.noconvert(), "threads"_a,
          "The stress of each point's pairs, and half the gradient of that of all, over a symmetric CSR pattern.");
}

}  // namespace

void bind_stress(nb::module_ &m) {
    m.def("condensed_distances",
          [](In<float, nb::shape<-1, -1>> X, Out<float, nb::shape<-1>> out, int threads) {
              const std::size_t n = X.shape(0);
              require(X.shape(1) > 0 && out.shape(0) == n * (n - 1) / 2, "out must have n (n - 1) / 2 numbers");
              nb::gil_scoped_release release;
              backend().condensed_distances(X.data(), std::int64_t(n), std::int64_t(X.shape(1)), out.data(), threads);
          },
          "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
          "Euclidean distances of the pairs i < j, row by row, in float32.");
    bind_sums<float>(m);
    bind_sums<double>(m);
}
