// Pairs of points in flat space, on the torus and in the hyperbolic plane: squared distances and directions.
#pragma once
#include <cmath>

#include "primitives/kernels.hpp"
#include "primitives/sparse_edges.hpp"
#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

// Directions v and squared distances between point i and one tile of points.
template <int TILE, class R> struct Pairs {
    R *diff;  // (d, TILE): y_i - y_j in flat space, in memory of the caller
    alignas(64) R d2[TILE];
    explicit Pairs(R *differences) : diff(differences) {}

    R *component(int c) { return diff + std::int64_t(c) * TILE; }
};

// A space fills a tile with the consecutive points start .. start + TILE - 1, or with the `count` points listed in
// `index`. `kernel` returns k as a function of the d2 of its pairs, and `finish` completes the sum over a row.
template <class R> struct FlatSpace {
    const Columns<R> &Y;
    int d;
    explicit FlatSpace(const Columns<R> &points) : Y(points), d(points.d) {}

    template <class K> EQ_INLINE const K &kernel(const K &k) const { return k; }
    EQ_INLINE void finish(std::int64_t, double *) const {}

    // Padding after the last point is zero, and so are its weights.
    template <int TILE> EQ_INLINE void consecutive(Pairs<TILE, R> &pairs, std::int64_t i, std::int64_t start) const {
        R *d2 = pairs.d2;
        for (int t = 0; t < TILE; ++t) d2[t] = R(0);
        for (int c = 0; c < d; ++c) {
            const R yi = Y.column(c)[i], *yj = Y.column(c) + start;
            R *__restrict out = pairs.component(c);
            for (int t = 0; t < TILE; ++t) {
                out[t] = yi - yj[t];
                d2[t] += out[t] * out[t];
            }
        }
    }

    // The rest of the tile repeats point i itself.
    template <int TILE>
    EQ_INLINE void listed(Pairs<TILE, R> &pairs, std::int64_t i, const std::int32_t *index, int count) const {
        R *d2 = pairs.d2;
        for (int t = 0; t < TILE; ++t) d2[t] = R(0);
        for (int c = 0; c < d; ++c) {
            const R *y = Y.column(c), yi = y[i];
            R *__restrict out = pairs.component(c);
            for (int t = 0; t < count; ++t) out[t] = yi - y[index[t]];
            for (int t = count; t < TILE; ++t) out[t] = R(0);
            for (int t = 0; t < TILE; ++t) d2[t] += out[t] * out[t];
        }
    }
};

// Values of a column for one tile; the rest of the tile repeats `own`.
template <int TILE, class R> EQ_INLINE void take(const R *column, std::int64_t start, R *out) {
    for (int t = 0; t < TILE; ++t) out[t] = column[start + t];
}
template <int TILE, class R>
EQ_INLINE void take(const R *column, const std::int32_t *index, int count, R own, R *out) {
    for (int t = 0; t < count; ++t) out[t] = column[index[t]];
    for (int t = count; t < TILE; ++t) out[t] = own;
}

// Rounding to the nearest integer, for numbers far below 2^22: adding 1.5·2^mantissa leaves no digits after the point.
EQ_INLINE float nearest_integer(float x) { return (x + 12582912.0f) - 12582912.0f; }
EQ_INLINE double nearest_integer(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// The flat torus: every component of y_i - y_j is wrapped to the nearest image.
template <class R> struct TorusSpace {
    Columns<R> T, Y;
    Buffer<R> period, inverse;
    int d;
    TorusSpace(const Space &space, Points<R> targets, Points<R> points)
        : T(targets), Y(points), period(points.d), inverse(points.d), d(points.d) {
        for (int c = 0; c < d; ++c) period[c] = R(space.period[c]), inverse[c] = R(1 / space.period[c]);
    }

    template <class K> EQ_INLINE const K &kernel(const K &k) const { return k; }
    EQ_INLINE void finish(std::int64_t, double *) const {}

    template <int TILE, class Take> EQ_INLINE void fill(Pairs<TILE, R> &pairs, std::int64_t i, Take take_column) const {
        R *d2 = pairs.d2;
        for (int t = 0; t < TILE; ++t) d2[t] = R(0);
        for (int c = 0; c < d; ++c) {
            const R yi = T.column(c)[i], L = period[c], per = inverse[c];
            R *__restrict out = pairs.component(c);
            take_column(Y.column(c), yi, out);
            for (int t = 0; t < TILE; ++t) {
                const R diff = yi - out[t];
                out[t] = diff - L * nearest_integer(diff * per);
                d2[t] += out[t] * out[t];
            }
        }
    }
    template <int TILE> EQ_INLINE void consecutive(Pairs<TILE, R> &pairs, std::int64_t i, std::int64_t start) const {
        fill(pairs, i, [&](const R *column, R, R *out) { take<TILE>(column, start, out); });
    }
    template <int TILE>
    EQ_INLINE void listed(Pairs<TILE, R> &pairs, std::int64_t i, const std::int32_t *index, int count) const {
        fill(pairs, i, [&](const R *column, R own, R *out) { take<TILE>(column, index, count, own, out); });
    }
};

// The kernel as a function of x = (2 R sinh(d/2R))², for distances d in the hyperbolic plane of curvature -1/R².
// dd2/dx = (d/R) / sinh(d/R).
template <class R, class K> struct Geodesic {
    K k;
    R radius2;
    EQ_INLINE R squared_distance(R x, R *slope) const {
        const R s = x * (R(0.25) / radius2), sinh = R(2) * root(s * (R(1) + s));
        // log(1 + z) without cancellation for small z: log(w) / (w - 1) · z, where w is 1 + z rounded.
        const R z = R(2) * s + sinh, w = R(1) + z, rounded = w - R(1);
        const R d = rounded > R(0) ? log(w) * (z / rounded) : z;
        *slope = sinh > R(0) ? d / sinh : R(1);
        return radius2 * d * d;
    }
    static EQ_INLINE float root(float x) { return __builtin_sqrtf(x); }
    static EQ_INLINE double root(double x) { return __builtin_sqrt(x); }
    EQ_INLINE Radial<R> operator()(R x) const {
        R slope;
        Radial<R> r = k(squared_distance(x, &slope));
        r.log_slope *= slope;
        return r;
    }
};
template <class R, class K>
EQ_INLINE void value_and_slope(const Geodesic<R, K> &k, R x, R *value, R *slope) {
    R factor;
    value_and_slope(k.k, k.squared_distance(x, &factor), value, slope);
    *slope *= factor;
}

// Up to 8 points of the plane, as columns in float64, so that the compiler vectorises loops over them.
struct EightPoints {
    static constexpr int SIZE = 8;
    alignas(64) double x[SIZE] = {}, y[SIZE] = {};
    EightPoints() = default;
    template <class R> EQ_INLINE EightPoints(const R *rows, int count, double scale) {
        for (int t = 0; t < count; ++t) {
            x[t] = double(rows[2 * t]) * scale;
            y[t] = double(rows[2 * t + 1]) * scale;
        }
    }
    template <class R> EQ_INLINE void write(R *rows, int count) const {
        for (int t = 0; t < count; ++t) {
            rows[2 * t] = R(x[t]);
            rows[2 * t + 1] = R(y[t]);
        }
    }
};

// Calls use(t) for t = 0 .. 7. Before the loop the compiler must forget the values of arrays: GCC 12 otherwise moves loads
// of the next element to the end of the loop, and then does not vectorise it.
template <class Use> EQ_INLINE void for_lanes(const Use &use) {
    __asm__ volatile("" ::: "memory");
    for (int t = 0; t < 8; ++t) use(t);
}

// Calls use(first point, count) for up to 8 points at a time.
template <class Use> void for_eights(std::int64_t n, int threads, const Use &use) {
    parallel_for((n + 7) / 8, 128, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = 8 * first; i < 8 * last; i += 8) use(i, int(n - i < 8 ? n - i : 8));
    });
}

// A point r e of the hyperbolic plane of curvature -1; at the origin, e = (1, 0).
struct HyperbolicPoint {
    double r, sinh, cosh, e[2];
    EQ_INLINE HyperbolicPoint(double a, double b) : r(__builtin_sqrt(a * a + b * b)) {
        const double grown = expm1(r);
        sinh = 0.5 * (grown + grown / (grown + 1));
        cosh = __builtin_sqrt(1 + sinh * sinh);
        e[0] = r > 0 ? a / r : 1.0;
        e[1] = r > 0 ? b / r : 0.0;
    }
    EQ_INLINE double sinhc() const { return r > 0 ? sinh / r : 1.0; }
};

// The hyperbolic plane in normal coordinates y = R r e at the origin, with a unit vector e. The pairs are
//   x = 4R² (h² + S_i S_j g),  h = sinh((r_i - r_j)/2),  S = sinh r,  g = |e_i - e_j|²/4,
// and ½ ∂x/∂y_i along e_i and across it: 2R (h cosh((r_i - r_j)/2) + cosh(r_i) S_j g) and R (S_i/r_i) S_j sin(t_i - t_j).
template <class R> struct HyperbolicSpace {
    static constexpr int d = 2;
    enum { radial, sinh, e0, e1, cosh, sinhc, COLUMNS };
    double radius;
    std::int64_t t_stride, stride;
    Buffer<R> T, Y;  // (COLUMNS, stride)
    HyperbolicSpace(const Space &space, Points<R> targets, Points<R> points)
        : radius(space.radius), t_stride(padded(targets.n)), stride(padded(points.n)), T(COLUMNS * t_stride),
          Y(COLUMNS * stride) {
        prepare(targets, T.data, t_stride);
        prepare(points, Y.data, stride);
    }
    static std::int64_t padded(std::int64_t n) { return (n + TILE - 1) / TILE * TILE; }

    void prepare(Points<R> points, R *out, std::int64_t step) const {
        for (std::int64_t i = 0; i < points.n; ++i) {
            const HyperbolicPoint at(double(points.row(i)[0]) / radius, double(points.row(i)[1]) / radius);
            const double values[COLUMNS] = {at.r, at.sinh, at.e[0], at.e[1], at.cosh, at.sinhc()};
            for (int c = 0; c < COLUMNS; ++c) out[c * step + i] = R(values[c]);
        }
    }

    template <class K> EQ_INLINE Geodesic<R, K> kernel(const K &k) const { return {k, R(radius * radius)}; }
    EQ_INLINE const Tabulated<R> &kernel(const Tabulated<R> &k) const { return k; }  // already a function of x
    EQ_INLINE void finish(std::int64_t i, double *v) const {
        const double a = T[e0 * t_stride + i], b = T[e1 * t_stride + i], along = v[0], across = v[1];
        v[0] = along * a - across * b;
        v[1] = along * b + across * a;
    }

    template <int TILE, class Take> EQ_INLINE void fill(Pairs<TILE, R> &pairs, std::int64_t i, Take take_column) const {
        alignas(64) R r[TILE], s[TILE], a[TILE];
        const R *own = T.data + i;
        const R ri = own[radial * t_stride], si = own[sinh * t_stride], ai = own[e0 * t_stride], bi = own[e1 * t_stride];
        const R ci = own[cosh * t_stride], zi = own[sinhc * t_stride];
        R *__restrict along = pairs.component(0), *__restrict across = pairs.component(1);
        take_column(Y.data + radial * stride, ri, r);
        take_column(Y.data + sinh * stride, si, s);
        take_column(Y.data + e0 * stride, ai, a);
        take_column(Y.data + e1 * stride, bi, across);
        const R R1 = R(radius), R2 = R(2 * radius), R4 = R(4 * radius * radius);
        for (int t = 0; t < TILE; ++t) {
            const R b = across[t], da = ai - a[t], db = bi - b, g = R(0.25) * (da * da + db * db);
            const R grown = expm1(R(0.5) * (ri - r[t])), h = R(0.5) * (grown + grown / (grown + R(1)));
            pairs.d2[t] = R4 * (h * h + si * s[t] * g);
            along[t] = R2 * (h * (grown + R(1) - h) + ci * s[t] * g);  // cosh = e^x - sinh
            across[t] = R1 * zi * s[t] * (bi * a[t] - ai * b);
        }
    }
    template <int TILE> EQ_INLINE void consecutive(Pairs<TILE, R> &pairs, std::int64_t i, std::int64_t start) const {
        fill(pairs, i, [&](const R *column, R, R *out) { take<TILE>(column, start, out); });
    }
    template <int TILE>
    EQ_INLINE void listed(Pairs<TILE, R> &pairs, std::int64_t i, const std::int32_t *index, int count) const {
        fill(pairs, i, [&](const R *column, R own, R *out) { take<TILE>(column, index, count, own, out); });
    }
};

// The same pairs for sparse_rows(), 8 at a time in float32.
template <int W> struct TorusRows {
    static constexpr int COMPONENTS = W;
    float period[W], inverse[W];  // 0 beyond the coordinates
    EQ_INLINE const float *prepare(const float *target) const { return target; }
    EQ_INLINE Vector compare(const float *target, const Vector *y, Vector *diff) const {
        Vector d2 = {};
        for (int c = 0; c < W; ++c) {
            const Vector difference = target[c] - y[c];
            diff[c] = difference - period[c] * ((difference * inverse[c] + 12582912.0f) - 12582912.0f);
            d2 += diff[c] * diff[c];
        }
        return d2;
    }
    EQ_INLINE void finish(const float *, double *) const {}
};

// Points of the hyperbolic plane in the Poincaré disk, y = tanh(r/2) e with r in units of R, as rows of 4 numbers: y as
// integer multiples of a unit, w = 1/(1 - |y|²) = cosh²(r/2), and sinh(r)/r. Differences of integers are exact, so that
// near points far out keep their digits. With D = y_i - y_j the pairs are (docs/math.md, section 21)
//   x = 4R² w_i w_j |D|²,   ½ ∂x/∂u_i = 2R [z w_j D + (1 - z) w_j <D, e> e] + x/(2R) y_i,   z = sinh(r_i)/r_i.
// The three components are w_j D in units, and x.
struct HyperbolicRows {
    static constexpr int COMPONENTS = 3;
    struct Target {
        std::int32_t y[2];
        float factor;  // 4R² w_i unit²
        float z;
    };
    double radius, unit;

    EQ_INLINE Target prepare(const float *row) const {
        Target at;
        std::memcpy(at.y, row, sizeof at.y);
        at.factor = float(4 * radius * radius * unit * unit) * row[2];
        at.z = row[3];
        return at;
    }
    EQ_INLINE Vector compare(const Target &at, const Vector *y, Vector *diff) const {
        const Vector a = floats(at.y[0] - bits<Integers>(y[0])), b = floats(at.y[1] - bits<Integers>(y[1]));
        diff[0] = y[2] * a;
        diff[1] = y[2] * b;
        return diff[2] = at.factor * (diff[0] * a + diff[1] * b);
    }
    EQ_INLINE void finish(const Target &at, double *v) const {
        const double a = at.y[0], b = at.y[1], norm2 = a * a + b * b, scale = 2 * radius * unit, z = at.z;
        const double along = norm2 > 0 ? (1 - z) * (v[0] * a + v[1] * b) / norm2 : 0;
        const double more = scale * along + v[2] * unit / (2 * radius);
        v[0] = scale * z * v[0] + more * a;
        v[1] = scale * z * v[1] + more * b;
    }
};

// The largest |u|² of points, ignoring NaN.
inline double largest_square(Points<float> Y) {
    double largest = 0;
    for (std::int64_t i = 0; i < Y.n; ++i) {
        const double a = Y.row(i)[0], b = Y.row(i)[1], square = a * a + b * b;
        largest = square > largest ? square : largest;
    }
    return largest;
}

// The rows of targets and of points, in a common unit. Targets without data are the points.
struct HyperbolicTable {
    HyperbolicRows space;
    Buffer<float> own, rows;
    const float *targets;

    HyperbolicTable(double radius, Points<float> T, Points<float> Y, int threads)
        : space{radius, unit_of(radius, T, Y)}, own(T.data == nullptr ? 1 : 4 * T.n, UNINITIALIZED),
          rows(4 * Y.n, UNINITIALIZED), targets(T.data == nullptr ? rows.data : own.data) {
        fill(Y, rows.data, threads);
        if (T.data != nullptr) fill(T, own.data, threads);
    }

private:
    static constexpr double LARGEST = 1e9;  // the largest |y| in units, up to rounding: differences fit in 32 bits

    static double unit_of(double radius, Points<float> T, Points<float> Y) {
        const double own = T.data == nullptr ? 0 : largest_square(T), other = largest_square(Y);
        const double extent = std::tanh(std::sqrt(own > other ? own : other) / (2 * radius));
        return extent > 0 ? extent / LARGEST : 1.0;
    }
    void fill(Points<float> Y, float *out, int threads) const {
        const double inverse = 1 / space.unit;
        for_eights(Y.n, threads, [&](std::int64_t i, int count) {
            const EightPoints at(Y.row(i), count, 1 / space.radius);
            alignas(64) std::int32_t a[8], b[8];
            alignas(64) float w[8], z[8];
            for_lanes([&](int t) {
                const HyperbolicPoint u(at.x[t], at.y[t]);
                const double tanh = u.sinh / (1 + u.cosh) * inverse;  // of r/2
                a[t] = in_units(tanh * u.e[0]);
                b[t] = in_units(tanh * u.e[1]);
                w[t] = float(0.5 * (1 + u.cosh));
                z[t] = float(u.sinhc());
            });
            for (int t = 0; t < count; ++t) {
                const float row[4] = {bits<float>(a[t]), bits<float>(b[t]), w[t], z[t]};
                std::memcpy(out + 4 * (i + t), row, sizeof row);
            }
        });
    }
    static EQ_INLINE std::int32_t in_units(double y) {
        const double rounded = nearest_integer(y);
        return std::int32_t(std::fabs(rounded) < 1.05 * LARGEST ? rounded : 0);  // NaN: 0
    }
};

// Edges with b = -1 in a curved space, as sparse_edges(); in the hyperbolic plane for tables only.
inline bool curved_sparse_edges(const Space &space, const Kernel &kernel, const Weights &A, Points<float> targets,
                                Points<float> Y, EdgeSums out, int threads) {
    const bool hyperbolic = space.kind == Space::Kind::hyperbolic, potential = out.potential != nullptr;
    if (Y.d > 4 || (hyperbolic && kernel.family != Kernel::Family::tabulated)) return false;
    if (hyperbolic)
        return with_edge_kernel(kernel, potential, [&](auto k, auto with_potential) {
            const HyperbolicTable in(space.radius, targets, Y, threads);
            sparse_rows<4, decltype(with_potential)::value>(k, in.space, A, in.targets, in.rows.data, 2, out, OnThreads{threads});
        });
    return with_edge_kernel(kernel, potential, [&](auto k, auto with_potential) {
        const PaddedPoints rows(Y, threads);
        const PaddedPoints own(targets.data == nullptr ? Points<float>{nullptr, 0, Y.d} : targets, threads);
        const float *T = targets.data == nullptr ? rows.data : own.data;
        const auto run = [&](auto W) {
            TorusRows<W> in = {};
            for (int c = 0; c < Y.d; ++c) {
                in.period[c] = float(space.period[c]);
                in.inverse[c] = float(1 / space.period[c]);
            }
            sparse_rows<W, decltype(with_potential)::value>(k, in, A, T, rows.data, Y.d, out, OnThreads{threads});
        };
        if (rows.W == 1) run(std::integral_constant<int, 1>{});
        else if (rows.W == 2) run(std::integral_constant<int, 2>{});
        else run(std::integral_constant<int, 4>{});
    });
}

}  // namespace EQ_ISA
}  // namespace eq
