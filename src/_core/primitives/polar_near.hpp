// The near field in the hyperbolic plane: pairs closer than `reach`, from points sorted into cells of a polar grid.
// docs/math.md, section 21.
#pragma once
#include "primitives/pairs.hpp"

namespace eq {
namespace EQ_ISA {

// The ring of a point around the origin, and its angle.
struct PolarPosition {
    std::int64_t ring;  // -1: not a number, or outside of all rings
    double turns;       // the angle, in [0, 1]
};

// Rings of at least half the reach, in units of R, each cut into cells of equal angles. A point has its partners in its
// own ring and in two on either side.
struct PolarGrid {
    static constexpr int BESIDE = 2, NEAR = 2 * BESIDE + 1;
    static constexpr double PI = 3.14159265358979323846;
    static constexpr double FINE = 8;              // cells per reach along a ring; chosen
    static constexpr std::int64_t PER_POINT = 2;   // cells of a ring per point in it, at most; chosen
    static constexpr std::int64_t MOST = 1 << 16;  // rings; chosen
    double radius, reach, ring;                    // the last two in units of R
    std::int64_t rings;
    Buffer<std::int64_t> first;  // (rings + 1,): the first cell of each ring
    Buffer<double> width;        // (rings + BESIDE, NEAR): half the angle, in turns, that contains the partners

    PolarGrid(double R, double within, Points<float> Y)
        : radius(R), reach(within / R), ring(ring_width(reach, std::sqrt(largest_square(Y)) / R)),
          rings(std::int64_t(std::sqrt(largest_square(Y)) / R / ring) + 1), first(rings + 1),
          width((rings + BESIDE) * NEAR, UNINITIALIZED) {
        for (std::int64_t p = 0; p < rings + BESIDE; ++p)
            for (int b = 0; b < NEAR; ++b) width[p * NEAR + b] = half_angle(p, p + b - BESIDE);
    }

    // The positions of points (count, 2), up to 8.
    EQ_INLINE void locate(const float *rows, int count, PolarPosition *out) const {
        const EightPoints at(rows, count, 1.0);
        alignas(64) double q[8], angle[8];
        const double R = radius, width = ring;
        for_lanes([&](int t) {
            const double a = at.x[t], b = at.y[t];
            q[t] = __builtin_sqrt(a * a + b * b) / R / width;
            angle[t] = turns(a, b);
        });
        for (int t = 0; t < count; ++t) {
            const bool inside = q[t] < double(rings + BESIDE);
            out[t] = {inside ? std::int64_t(q[t]) : -1, inside ? angle[t] : 0.0};
        }
    }

    // Cuts the rings into cells for as many points as `first` counts in each.
    void cut() {
        std::int64_t total = 0;
        for (std::int64_t q = 0; q < rings; ++q) {
            const double most = double(PER_POINT * first[q] + 1);
            const double fine = 2 * PI * std::sinh(double(q) * ring) * FINE / reach;
            first[q] = total;
            total += std::int64_t(fine < most ? fine : most) + 1;
        }
        first[rings] = total;
    }
    EQ_INLINE std::int64_t cells(std::int64_t q) const { return first[q + 1] - first[q]; }
    EQ_INLINE std::int64_t cell(const PolarPosition &at) const {
        const std::int64_t count = cells(at.ring), c = std::int64_t(at.turns * double(count));
        return first[at.ring] + (c < count ? c : count - 1);
    }

private:
    static double ring_width(double reach, double largest) {
        const double half = reach / 2, least = largest < 1e300 ? largest / double(MOST) : 1e300;
        return half > least ? half : least;
    }

    // sin²(Δt/2) <= (sinh²(reach/2) - sinh²(Δr/2)) / (sinh r sinh r') for partners: Δr at least the distance of the
    // rings, r and r' at least their inner radii. Negative if there are none.
    double half_angle(std::int64_t p, std::int64_t q) const {
        const double between = ring * double((p > q ? p - q : q - p) - 1);
        const double gap = between > 0 ? std::sinh(between / 2) : 0;
        const double most = std::sinh(reach / 2), left = most * most - gap * gap;
        const double sines = q < 0 ? 1 : std::sinh(double(p) * ring) * std::sinh(double(q) * ring);
        if (q < 0 || q >= rings || !(left > 0)) return -1;
        return left < sines ? std::asin(std::sqrt(left / sines)) / PI * (1 + 1e-6) : 0.5;
    }
};

// Points sorted by cell. The points of a ring are followed by 8 without a charge, so that eight can be read from any
// position.
struct PolarCells {
    static constexpr std::int64_t PADDING = 8;
    const PolarGrid &grid;
    std::int64_t stride;
    Buffer<std::int32_t> start;  // per ring, the first point of each cell and the end of the last
    Buffer<std::int32_t> order;  // -1 for padding

    // `grid` has counted the points of its rings, at the positions `at`, and is cut into cells.
    PolarCells(const PolarGrid &cells, const PolarPosition *at, std::int64_t n, int threads)
        : grid(cells), stride(n + PADDING * cells.rings), start(cells.first[cells.rings] + cells.rings),
          order(stride, UNINITIALIZED) {
        Buffer<std::int64_t> slot(n, UNINITIALIZED);  // the cell of each point, in `start`
        parallel_for(n, 2048, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t i = first; i < last; ++i) slot[i] = in_ring(at[i]) ? grid.cell(at[i]) + at[i].ring : -1;
        });
        for (std::int64_t s = 0; s < stride; ++s) order[s] = -1;
        for (std::int64_t i = 0; i < n; ++i)
            if (slot[i] >= 0) ++start[slot[i]];
        std::int32_t total = 0;
        for (std::int64_t q = 0; q < grid.rings; ++q) {
            for (std::int64_t s = grid.first[q] + q; s < grid.first[q + 1] + q; ++s) {
                const std::int32_t count = start[s];
                start[s] = total;  // below, the start of a cell moves to its end
                total += count;
            }
            start[grid.first[q + 1] + q] = total;
            total += std::int32_t(PADDING);
        }
        for (std::int64_t i = 0; i < n; ++i)
            if (slot[i] >= 0) order[start[slot[i]]++] = std::int32_t(i);
        for (std::int64_t q = 0; q < grid.rings; ++q) {
            const std::int64_t from = grid.first[q] + q, to = grid.first[q + 1] + q;
            for (std::int64_t s = to - 1; s > from; --s) start[s] = start[s - 1];
            start[from] = q == 0 ? 0 : start[from - 1] + std::int32_t(PADDING);
        }
    }
    bool in_ring(const PolarPosition &at) const { return at.ring >= 0 && at.ring < grid.rings; }

    // Calls use(first, last) for runs of points that contain all partners of a point. The seven points after the end of
    // a run are in no other.
    template <class Use> EQ_INLINE void around(const PolarPosition &at, const Use &use) const {
        for (int b = 0; b < PolarGrid::NEAR; ++b) {
            const double half = grid.width[at.ring * PolarGrid::NEAR + b];
            if (half < 0) continue;
            const std::int64_t q = at.ring + b - PolarGrid::BESIDE, count = grid.cells(q);
            const std::int32_t *const cell = start.data + grid.first[q] + q;
            const double n = double(count), low = (at.turns - half) * n + n, high = (at.turns + half) * n;
            const std::int64_t from = std::int64_t(low) - count, to = std::int64_t(high) + 1;
            if (to - from >= count) use(cell[0], cell[count]);
            else if (from >= 0 && to <= count) use(cell[from], cell[to]);
            else {
                const std::int32_t tail = cell[from < 0 ? from + count : from];
                const std::int32_t head = cell[to > count ? to - count : to];
                if (head + PADDING > tail) use(cell[0], cell[count]);
                else {
                    use(tail, cell[count]);
                    use(cell[0], head);
                }
            }
        }
    }
};

// Sums over runs of sorted points, 8 at a time in float32.
struct RunSum {
    static constexpr int SUMS = 1 + HyperbolicRows::COMPONENTS;  // Φ and the components of ½∇Φ
    HyperbolicRows space;
    Table table;
    const PolarCells &cells;
    std::int64_t stride;
    int m;
    Buffer<float> columns, charges;  // (3, stride) and (m, stride)

    RunSum(const HyperbolicTable &points, const Table &of, const PolarCells &sorted, Charges c, int threads)
        : space(points.space), table(of), cells(sorted), stride(sorted.stride), m(c.m),
          columns(3 * stride, UNINITIALIZED), charges(m * stride, UNINITIALIZED) {
        parallel_for(stride, 2048, threads, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t s = first; s < last; ++s) {
                const std::int64_t i = cells.order[s];
                for (int k = 0; k < 3; ++k) columns[k * stride + s] = i < 0 ? 0.0f : points.rows[4 * i + k];
                for (int q = 0; q < m; ++q) charges[q * stride + s] = i < 0 ? 0.0f : float(c.data[i * m + q]);
            }
        });
    }

    // Adds to sums (M, SUMS); M is the number of charges, or 0 if it is not known at compile time.
    template <int M>
    EQ_INLINE void add(const HyperbolicRows::Target &target, std::int64_t from, std::int64_t to, Vector *sums) const {
        for (std::int64_t s = from; s < to; s += 8) {
            Vector y[3], diff[HyperbolicRows::COMPONENTS], value, slope;
            for (int k = 0; k < 3; ++k) y[k] = load(columns.data + k * stride + s);
            look_up_eight<true>(table, {table, space.compare(target, y, diff)}, &value, &slope);
            for (int q = 0; q < (M > 0 ? M : m); ++q) {
                const Vector charge = load(charges.data + q * stride + s), strength = charge * slope;
                Vector *const sum = sums + q * SUMS;
                sum[0] += charge * value;
                for (int k = 1; k < SUMS; ++k) sum[k] += strength * diff[k - 1];
            }
        }
    }

    // Adds the sums at target i; `sums` has room for (m, SUMS).
    template <int M>
    EQ_INLINE void at(const float *row, const PolarPosition &at, std::int64_t i, Vector *sums, FieldSums out) const {
        const HyperbolicRows::Target target = space.prepare(row);
        for (int k = 0; k < m * SUMS; ++k) sums[k] = Vector{};
        cells.around(at, [&](std::int64_t from, std::int64_t to) { add<M>(target, from, to, sums); });
        for (int q = 0; q < m; ++q) {
            double v[HyperbolicRows::COMPONENTS];
            for (int k = 1; k < SUMS; ++k) v[k - 1] = total(sums[q * SUMS + k]);
            space.finish(target, v);
            out.potential[i * m + q] += total(sums[q * SUMS]);
            for (int c = 0; c < 2; ++c) out.half_gradient[(i * m + q) * 2 + c] += v[c];
        }
    }
};

// Adds to Φ and ½∇Φ at the targets the pairs closer than `reach`. The table is a function of x = (2R sinh(d/2R))² that
// is 0 beyond. If targets.data is null, the targets are the points.
inline void polar_near(const Space &of, const Table &table, double reach, Points<float> targets, Points<float> Y,
                       Charges charges, FieldSums out, int threads) {
    const std::int64_t n = targets.data == nullptr ? Y.n : targets.n;
    PolarGrid grid(of.radius, reach, Y);
    Buffer<PolarPosition> own(targets.data == nullptr ? 1 : n, UNINITIALIZED), position(Y.n, UNINITIALIZED);
    const auto locate = [&](Points<float> U, PolarPosition *at) {
        for_eights(U.n, threads, [&](std::int64_t i, int count) { grid.locate(U.row(i), count, at + i); });
    };
    locate(Y, position.data);
    if (targets.data != nullptr) locate(targets, own.data);
    for (std::int64_t i = 0; i < Y.n; ++i)
        if (position[i].ring >= 0 && position[i].ring < grid.rings) ++grid.first[position[i].ring];
    grid.cut();
    const PolarCells cells(grid, position.data, Y.n, threads);
    const HyperbolicTable points(of.radius, targets, Y, threads);
    const RunSum run(points, table, cells, charges, threads);
    const PolarPosition *const at = targets.data == nullptr ? position.data : own.data;
    PerThread<Buffer<Vector>> sums(threads, std::int64_t(run.m) * RunSum::SUMS);
    parallel_for(n, 256, sums.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
        for (std::int64_t i = first; i < last; ++i) {
            if (at[i].ring < 0) continue;
            Vector one[RunSum::SUMS];
            if (run.m == 1) run.at<1>(points.targets + 4 * i, at[i], i, one, out);
            else run.at<0>(points.targets + 4 * i, at[i], i, sums[slot].data, out);
        }
    });
}

}  // namespace EQ_ISA
}  // namespace eq
