// Points on a polar mesh of the hyperbolic plane: their positions, and gradients along the plane's axes.
// docs/math.md, section 21.
#pragma once
#include "primitives/pairs.hpp"

namespace eq {
namespace EQ_ISA {

// Writes the distances from the origin in widths h and the angles in [0, angles], as rows.
template <class R> void polar_nodes(const PolarMesh &mesh, Points<R> Y, R *out, int threads) {
    const double h = mesh.h, angles = mesh.angles;
    for_eights(Y.n, threads, [&](std::int64_t i, int count) {
        const EightPoints at(Y.row(i), count, 1.0);
        EightPoints nodes;
        for_lanes([&](int t) {
            const double a = at.x[t], b = at.y[t];
            nodes.x[t] = __builtin_sqrt(a * a + b * b) / h;
            nodes.y[t] = turns(a, b) * angles;
        });
        nodes.write(out + 2 * i, count);
    });
}

// Turns gradients (n, m, 2), given per node along the radius and the angle, into those in normal coordinates. Points
// nearer to the origin than `centre` have the gradient of a point there.
template <class R> void polar_gradient(const PolarMesh &mesh, Points<R> Y, int m, double *gradient, int threads) {
    const double per_angle = mesh.angles / (2 * 3.14159265358979323846), per_ring = 1 / mesh.h, centre = mesh.centre;
    for_eights(Y.n, threads, [&](std::int64_t i, int count) {
        const EightPoints at(Y.row(i), count, 1.0);
        alignas(64) double x[8], y[8], turn[8];
        for_lanes([&](int t) {
            const double a = at.x[t], b = at.y[t], r = __builtin_sqrt(a * a + b * b);
            x[t] = r > 0 ? a / r : 1.0;
            y[t] = r > 0 ? b / r : 0.0;
            turn[t] = per_angle / (r > centre ? r : centre);
        });
        for (int t = 0; t < count; ++t)
            for (int q = 0; q < m; ++q) {
                double *const g = gradient + 2 * ((i + t) * m + q);
                const double along = g[0] * per_ring, across = g[1] * turn[t];
                g[0] = along * x[t] - across * y[t];
                g[1] = along * y[t] + across * x[t];
            }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
