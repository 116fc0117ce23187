// Bindings of stress.
#include "bind/common.hpp"

namespace {

template <eq::Residual RESIDUAL> eq::Misfit make_misfit(int doublings, double unit, bool stretched, bool largest) {
    require(doublings >= 0 && doublings <= 16 && unit > 0, "doublings must be from 0 to 16, and unit positive");
    eq::Misfit misfit;
    misfit.residual = RESIDUAL;
    misfit.summary = largest          ? eq::Summary::largest
                     : doublings == 0 ? eq::Summary::squares
                                      : eq::Summary::powers;
    misfit.doublings = doublings;
    misfit.unit = unit;
    misfit.stretched = stretched;
    return misfit;
}

template <eq::Residual RESIDUAL> void bind_residual(nb::class_<eq::Misfit> &misfits, const char *name,
                                                    const char *formula) {
    misfits.def_static(name, &make_misfit<RESIDUAL>, "doublings"_a = 0, "unit"_a = 1.0, "stretched"_a = false,
                       "largest"_a = false, formula);
}

template <class R> void bind_sums(nb::module_ &m) {
    using Gradient = OutMatrix<double>;
    const auto check = [](const Matrix<R> &Y, const Gradient &half_gradient) {
        require(half_gradient.shape(0) == Y.shape(0) && half_gradient.shape(1) == Y.shape(1),
                "half gradients must have the shapes of the maps");
    };
    m.def(
        "stress_stored",
        [check](Vector<float> delta, Vector<float> weights, Matrix<R> Y, Gradient half_gradient, int threads,
                const eq::Misfit &misfit) {
            const std::size_t n = Y.shape(0);
            check(Y, half_gradient);
            require(delta.shape(0) == n * (n - 1) / 2, "delta must be condensed, with n (n - 1) / 2 elements");
            require(weights.shape(0) == 0 || weights.shape(0) == delta.shape(0),
                    "weights must be empty or have the length of delta");
            eq::Targets targets;
            targets.condensed = delta.data();
            targets.weights = weights.shape(0) == 0 ? nullptr : weights.data();
            eq::ReleaseGil release;
            return ops<R>().stress_pairs(misfit, targets, points(Y), half_gradient.data(), threads);
        },
        array("delta"), array("weights"), array("Y"), array("half_gradient"), "threads"_a, "misfit"_a = eq::Misfit(),
        "Stress and half its gradient over all pairs i < j, with condensed δ; empty `weights` are all 1.");
    m.def(
        "stress_points",
        [check](Matrix<float> X, Matrix<R> Y, Gradient half_gradient, int threads, const eq::Misfit &misfit) {
            check(Y, half_gradient);
            require(X.shape(0) == Y.shape(0) && X.shape(1) > 0, "X must have shape (n, D) for Y (n, d)");
            check_rows(X.shape(0), X.shape(1), MOST_COLUMNS);
            eq::Targets targets;
            targets.points = X.data();
            targets.dimension = std::int64_t(X.shape(1));
            eq::ReleaseGil release;
            return ops<R>().stress_pairs(misfit, targets, points(Y), half_gradient.data(), threads);
        },
        array("X"), array("Y"), array("half_gradient"), "threads"_a, "misfit"_a = eq::Misfit(),
        "The same with δ the Euclidean distances of X (n, D), computed in blocks and not stored.");
    m.def(
        "stress_between",
        [check](Matrix<float> delta, Vector<float> weights, Matrix<R> Y, Matrix<R> T, Gradient half_gradient,
                Gradient half_gradient_T, int threads, const eq::Misfit &misfit) {
            check(Y, half_gradient);
            check(T, half_gradient_T);
            require(delta.shape(0) == Y.shape(0) && delta.shape(1) == T.shape(0) && weights.shape(0) == T.shape(0) &&
                        T.shape(1) == Y.shape(1),
                    "delta must have shape (n, m) and weights (m,) for Y (n, d) and T (m, d)");
            eq::ReleaseGil release;
            return ops<R>().stress_between(misfit, delta.data(), weights.data(), points(Y), points(T),
                                           half_gradient.data(), half_gradient_T.data(), threads);
        },
        array("delta"), array("weights"), array("Y"), array("T"), array("half_gradient"), array("half_gradient_T"),
        "threads"_a, "misfit"_a = eq::Misfit(),
        "Stress between points Y and T, with δ (n, m) and a weight per point of T; half gradients for both.");
    m.def(
        "stress_listed",
        [check](const eq::Csr &A, Vector<float> delta, Vector<float> values, Matrix<R> Y, OutVector<double> stress,
                Gradient half_gradient, int threads, const eq::Misfit &misfit) {
            check(Y, half_gradient);
            const char *message = "delta and values must have one element per entry of A";
            const eq::Weights weights(A, entry_values(A, values, message));
            const float *targets = entry_values(A, delta, message);
            require(A.rows == std::int64_t(Y.shape(0)) && A.columns == A.rows, "A must have shape (n, n) for Y (n, d)");
            require(stress.shape(0) == Y.shape(0), "stress must have shape (n,)");
            keep_apart(A, stress, half_gradient);
            eq::ReleaseGil release;
            ops<R>().stress_listed(misfit, weights, targets, points(Y), stress.data(), half_gradient.data(), threads);
        },
        "A"_a, array("delta"), array("values"), array("Y"), array("stress"), array("half_gradient"), "threads"_a,
        "misfit"_a = eq::Misfit(),
        "The stress of each point's pairs, and half the gradient of the total, for a symmetric A (n, n).");
}

}  // namespace

void bind_stress(nb::module_ &m) {
    nb::class_<eq::Misfit> misfits(
        m, "Misfit",
        "What is summed over pairs with distance d, target δ and weight w: w e², or (w e / unit)^p with"
        " p = 2^doublings if doublings > 0, for a residual e. If `stretched`, only pairs with e > 0 count. If"
        " `largest`, the result is the largest w |e|, without a gradient.");
    bind_residual<eq::Residual::absolute>(misfits, "absolute", "e = d - δ");
    bind_residual<eq::Residual::relative>(misfits, "relative", "e = (d - δ)/δ");
    bind_residual<eq::Residual::logarithmic>(misfits, "logarithmic", "e = log(d/δ)");
    m.def(
        "condensed_distances",
        [](Matrix<float> X, OutVector<float> out, int threads) {
            const std::size_t n = X.shape(0);
            require(X.shape(1) > 0 && out.shape(0) == n * (n - 1) / 2, "out must have n (n - 1) / 2 elements");
            eq::ReleaseGil release;
            backend().condensed_distances(data_rows(X), out.data(), threads);
        },
        array("X"), array("out"), "threads"_a, "Euclidean distances of the pairs i < j, row by row, in float32.");
    bind_sums<float>(m);
    bind_sums<double>(m);
}
