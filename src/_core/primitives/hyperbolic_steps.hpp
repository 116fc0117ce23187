// Steps in the hyperbolic plane, point by point, in normal coordinates; geometry/hyperbolic.py has the equations.
#pragma once
#include "primitives/pairs.hpp"

namespace eq {
namespace EQ_ISA {

// A vector of three components on the hyperboloid: x0, and x along the plane.
struct Lorentz {
    double x0, x[2];
    EQ_INLINE Lorentz plus(double factor, const Lorentz &o) const {
        return {x0 + factor * o.x0, {x[0] + factor * o.x[0], x[1] + factor * o.x[1]}};
    }
};

// The tangent vector v at a point, given in its orthonormal frame.
EQ_INLINE Lorentz lifted(const HyperbolicPoint &at, double a, double b) {
    const double along = a * at.e[0] + b * at.e[1], more = (at.cosh - 1) * along;
    return {along * at.sinh, {a + more * at.e[0], b + more * at.e[1]}};
}

// The isometry that moves the point C to the origin.
EQ_INLINE Lorentz boosted(const Lorentz &v, const Lorentz &C) {
    const double inner = v.x[0] * C.x[0] + v.x[1] * C.x[1], factor = inner / (1 + C.x0) - v.x0;
    return {C.x0 * v.x0 - inner, {v.x[0] + factor * C.x[0], v.x[1] + factor * C.x[1]}};
}

// Writes a point of the hyperboloid in normal coordinates, and a tangent vector there in the orthonormal frame.
template <class R> EQ_INLINE void lower(const Lorentz &X, const Lorentz &W, double radius, R *point, R *velocity) {
    const double s = __builtin_sqrt(X.x[0] * X.x[0] + X.x[1] * X.x[1]);
    // asinh s = log(1 + z), z = s + s²/(1 + sqrt(1 + s²)), without cancellation for small s.
    const double z = s + s * s / (1 + __builtin_sqrt(1 + s * s)), w = 1 + z, rounded = w - 1;
    const double r = rounded > 0 ? log(w) * (z / rounded) : z, ratio = s > 0 ? r / s : 1.0;
    const double e[2] = {s > 0 ? X.x[0] / s : 1.0, s > 0 ? X.x[1] / s : 0.0};
    const double along = W.x[0] * e[0] + W.x[1] * e[1], less = along / X.x0 - along;
    for (int c = 0; c < 2; ++c) {
        point[c] = R(radius * ratio * X.x[c]);
        velocity[c] = R(radius * (W.x[c] + less * e[c]));
    }
}

// Moves points along geodesics with the initial velocities `step`, and transports `velocity` along them.
template <class R> void hyperbolic_move(double radius, Points<R> step, R *Y, R *velocity, int threads) {
    parallel_for(step.n, 1024, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
            const HyperbolicPoint at(Y[2 * i] / radius, Y[2 * i + 1] / radius);
            const double a = step.row(i)[0] / radius, b = step.row(i)[1] / radius, p = velocity[2 * i] / radius,
                         q = velocity[2 * i + 1] / radius;
            const Lorentz X = {at.cosh, {at.sinh * at.e[0], at.sinh * at.e[1]}}, S = lifted(at, a, b);
            const HyperbolicPoint length(__builtin_sqrt(a * a + b * b), 0);
            const double D2 = a * a + b * b, share = D2 > 0 ? (a * p + b * q) / D2 : 0, ratio = length.sinhc();
            const Lorentz W = lifted(at, p, q).plus(share * (length.cosh - 1), S).plus(share * D2 * ratio, X);
            const Lorentz moved = X.plus(length.cosh - 1, X).plus(ratio, S);
            lower(moved, W, radius, Y + 2 * i, velocity + 2 * i);
        }
    });
}

// Moves points by the isometry that takes the point c to the origin, with their velocities.
template <class R>
void hyperbolic_translate(double radius, double c0, double c1, std::int64_t n, R *Y, R *velocity, int threads) {
    const HyperbolicPoint c(c0 / radius, c1 / radius);
    const Lorentz C = {c.cosh, {c.sinh * c.e[0], c.sinh * c.e[1]}};
    parallel_for(n, 1024, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
            const HyperbolicPoint at(Y[2 * i] / radius, Y[2 * i + 1] / radius);
            const Lorentz X = {at.cosh, {at.sinh * at.e[0], at.sinh * at.e[1]}};
            const Lorentz W = lifted(at, velocity[2 * i] / radius, velocity[2 * i + 1] / radius);
            lower(boosted(X, C), boosted(W, C), radius, Y + 2 * i, velocity + 2 * i);
        }
    });
}

// Writes forces F (n, 2) in normal coordinates as vectors in the orthonormal frame: the component across e is
// multiplied by r/sinh r.
template <class R> void hyperbolic_tangent(double radius, Points<R> U, const double *F, double *out, int threads) {
    for_eights(U.n, threads, [&](std::int64_t i, int count) {
        const EightPoints at(U.row(i), count, 1 / radius);
        const EightPoints force(F + 2 * i, count, 1.0);
        EightPoints tangent;
        for_lanes([&](int t) {
            const HyperbolicPoint u(at.x[t], at.y[t]);
            const double f = force.x[t], g = force.y[t];
            const double turn = (g * u.e[0] - f * u.e[1]) * (1 / u.sinhc() - 1);
            tangent.x[t] = f - turn * u.e[1];
            tangent.y[t] = g + turn * u.e[0];
        });
        tangent.write(out + 2 * i, count);
    });
}

}  // namespace EQ_ISA
}  // namespace eq
