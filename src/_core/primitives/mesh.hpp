// The particle mesh: B-splines spread charges to a regular grid, and interpolate a potential on the grid and its
// gradient at the points. fourier.hpp has the convolution in between, near_field.hpp the pairs closer than the mesh
// resolves. docs/math.md, section 10.
#pragma once
#include <type_traits>

#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

constexpr std::int64_t SMALL_MESH = 1 << 14;  // elements up to which each share of the points gets a separate mesh
constexpr int STRIP = 8;  // rows of cells per strip: wider than a spline, so that a strip overlaps only the next ones

// A float32 sum of n nearly equal terms has a relative error of up to n 2^-25: 3 % for a million points in one cell, 3e-5
// for 1024. So sums of points are added up in steps: CHUNK points make a chunk, CHUNK chunks a larger chunk, and so on.
// Chosen.
constexpr std::int64_t CHUNK = 1024;

static_assert(STRIP > MESH_ORDER, "a row of nodes must belong to three strips at most");

// The nodes of a spline along one axis are one vector, padded with zero weights to a power of two.
template <int P> constexpr int WIDTH = P <= 4 ? 4 : 8;
template <int P, class R> struct Lanes {
    typedef R type __attribute__((vector_size(WIDTH<P> * sizeof(R)), aligned(sizeof(R)), may_alias));
};
template <int P, class R> using Run = typename Lanes<P, R>::type;

template <int P, class R> EQ_INLINE Run<P, R> load(const R *from) { return *reinterpret_cast<const Run<P, R> *>(from); }
template <int P, class R> EQ_INLINE R sum(Run<P, R> x) {
    R total = 0;
    for (int j = 0; j < P; ++j) total += x[j];
    return total;
}

// The weights of the P nodes around a point at offset f in [0, 1) of its cell, as polynomials in f: `weight[k][j]` is
// the coefficient of f^k at node j, from the Cox-de Boor recursion.
template <int P, class R> struct Spline {
    R weight[P][WIDTH<P>] = {}, slope[P - 1][WIDTH<P>] = {};

    constexpr Spline() {
        double w[P][P] = {};  // w[j][k]
        w[0][0] = 1;
        w[0][1] = -1;
        w[1][1] = 1;
        for (int order = 3; order <= P; ++order) {
            double next[P][P] = {};
            for (int j = 0; j < order; ++j)
                for (int k = 0; k < P; ++k) {
                    // (f + order - 1 - j) w_{j-1} + (j + 1 - f) w_j, over order - 1
                    const double left = j > 0 ? w[j - 1][k] : 0, right = j < order - 1 ? w[j][k] : 0;
                    next[j][k] += ((order - 1 - j) * left + (j + 1) * right) / (order - 1);
                    if (k + 1 < P) next[j][k + 1] += (left - right) / (order - 1);
                }
            for (int j = 0; j < P; ++j)
                for (int k = 0; k < P; ++k) w[j][k] = next[j][k];
        }
        for (int j = 0; j < P; ++j)
            for (int k = 0; k < P; ++k) {
                weight[k][j] = R(w[j][k]);
                if (k > 0) slope[k - 1][j] = R(k * w[j][k]);
            }
    }

    EQ_INLINE void operator()(R f, Run<P, R> *w, Run<P, R> *dw) const {
        *w = load<P>(weight[P - 1]);
        *dw = load<P>(slope[P - 2]);
#pragma GCC unroll 8
        for (int k = P - 2; k >= 0; --k) *w = *w * f + load<P>(weight[k]);
#pragma GCC unroll 8
        for (int k = P - 3; k >= 0; --k) *dw = *dw * f + load<P>(slope[k]);
    }
};

// A position along an axis, in mesh widths from the first node. Its cell is one whose spline lies inside the mesh: that
// of the nearest such position for a point outside, the first one for NaN.
template <int P, class R> struct Position {
    R u;
    int cell;
    EQ_INLINE Position(const Mesh &mesh, int axis, R y) {
        u = (y - R(mesh.origin[axis])) * R(mesh.inverse_h);
        const R first = R(P / 2 - 1), last = R(mesh.size[axis] - P / 2 - 1), inside = u > first ? u : first;
        cell = int(inside < last ? inside : last);
    }
};

// The nodes that a point touches: the first of them, and the weights along each axis.
template <int D, int P, class R> struct Stencil {
    std::int64_t corner = 0;
    Run<P, R> w[D], dw[D];

    EQ_INLINE Stencil(const Mesh &mesh, const R *y) {
        static constexpr Spline<P, R> spline;
#pragma GCC unroll 3
        for (int c = 0; c < D; ++c) {
            const Position<P, R> at(mesh, c, y[c]);
            R f = at.u - R(at.cell);
            f = f < R(0) ? R(0) : f > R(1) ? R(1) : f;  // points outside are moved to the border
            spline(f, &w[c], &dw[c]);
            corner = corner * mesh.size[c] + (at.cell - (P / 2 - 1));
        }
    }
};

// Calls use(first node of a run along the last axis, its weight, derivatives of the weight along the other axes).
template <int D, int P, class R, class Use>
EQ_INLINE void for_runs(const Mesh &mesh, const Stencil<D, P, R> &s, Use use) {
    if constexpr (D == 1) {
        use(s.corner, R(1), R(0), R(0));
    } else if constexpr (D == 2) {
#pragma GCC unroll 8
        for (int a = 0; a < P; ++a) use(s.corner + a * mesh.size[1], s.w[0][a], s.dw[0][a], R(0));
    } else {
        for (int a = 0; a < P; ++a)
#pragma GCC unroll 8
            for (int b = 0; b < P; ++b)
                use(s.corner + (a * mesh.size[1] + b) * mesh.size[2], s.w[0][a] * s.w[1][b], s.dw[0][a] * s.w[1][b],
                    s.w[0][a] * s.dw[1][b]);
    }
}

// A part of the mesh, or all of it: `size` consecutive nodes from node `first` on, with one copy for each charge.
template <class R> struct Patch {
    R *data;
    std::int64_t first, size;
};

template <int D, int P, class R>
EQ_INLINE void spread_point(const Mesh &mesh, const R *Y, Charges charges, std::int64_t i, Patch<R> patch) {
    const int m = charges.m;
    const Stencil<D, P, R> stencil(mesh, Y + i * D);
    for (int q = 0; q < m; ++q) {
        const R charge = R(charges.data[i * m + q]);
        R *out = patch.data + q * patch.size;
        for_runs(mesh, stencil, [&](std::int64_t first, R weight, R, R) {
            auto *run = reinterpret_cast<Run<P, R> *>(out + (first - patch.first));
            *run = *run + (charge * weight) * stencil.w[D - 1];
        });
    }
}

// Spreads the points index(begin) .. index(end - 1) to a patch of the mesh, which `target` contains. Float32 sums of many
// points are made in chunks, each in a patch of its own, and no more than CHUNK chunks are added up one after the other:
// more of them are first made into larger chunks. A chunk has at least as many points as half the nodes it costs.
template <int D, int P, class R, class Index>
void spread_points(const Mesh &mesh, const R *Y, Charges charges, std::int64_t begin, std::int64_t end, Index index,
                   Patch<R> target, std::int64_t first, std::int64_t size) {
    const std::int64_t all = size * charges.m;
    std::int64_t chunk = CHUNK > all / 2 ? CHUNK : all / 2;
    if (std::is_same<R, double>::value || end - begin <= chunk) {
        for (std::int64_t t = begin; t < end; ++t) spread_point<D, P, R>(mesh, Y, charges, index(t), target);
        return;
    }
    while ((end - begin) / CHUNK > chunk) chunk *= CHUNK;
    Buffer<R> sums(all + MESH_PADDING);
    const Patch<R> part{sums.data, first, size};
    for (std::int64_t t = begin; t < end; t += chunk) {
        const std::int64_t last = t + chunk < end ? t + chunk : end;
        spread_points<D, P, R>(mesh, Y, charges, t, last, index, part, first, size);
        for (int q = 0; q < charges.m; ++q) {
            R *const from = sums.data + q * size, *const to = target.data + q * target.size + (first - target.first);
            for (std::int64_t k = 0; k < size; ++k) {
                to[k] += from[k];
                from[k] = R(0);
            }
        }
    }
}

template <class Use> EQ_INLINE void with_mesh(const Mesh &mesh, Use use) {
    if (mesh.d == 1) use(std::integral_constant<int, 1>{});
    else if (mesh.d == 2) use(std::integral_constant<int, 2>{});
    else use(std::integral_constant<int, 3>{});
}

// Spreads charges of n points to meshes of one size; the memory is reused. The points are sorted by strip, STRIP rows of
// cells along the first axis, and the points of a strip are cut into parts. Each part is spread to a patch of its own,
// and the patches are added up row by row. So threads never write to the same node, and the order of the sum at a node
// does not depend on their number.
template <class R> class Spread {
public:
    Spread(const Mesh &mesh, std::int64_t n, int m, int threads)
        : threads_(threads), small_(mesh.nodes() * m <= SMALL_MESH), n_(n), strips_((mesh.size[0] + STRIP - 1) / STRIP),
          plane_(mesh.nodes() / mesh.size[0]), stride_(stride(mesh, m)), blocks_(n / 2048 < 64 ? n / 2048 + 1 : 64),
          shares_(n / 4096 < 16 ? n / 4096 + 1 : 16), per_part_(n / extra(mesh, m) > CHUNK ? n / extra(mesh, m) : CHUNK),
          most_parts_(small_ ? shares_ : strips_ + n / per_part_), key_(small_ ? 1 : n, UNINITIALIZED),
          order_(small_ ? 1 : n, UNINITIALIZED), next_(blocks_ * strips_, UNINITIALIZED),
          start_(strips_ + 1, UNINITIALIZED), first_part_(strips_ + 1, UNINITIALIZED), strip_(most_parts_, UNINITIALIZED),
          patches_(most_parts_ * (small_ ? mesh.nodes() * m + MESH_PADDING : stride_), UNINITIALIZED) {}

    // The mesh may have moved since the construction.
    void apply(const Mesh &mesh, Points<R> points, Charges charges, R *grid) {
        with_mesh(mesh, [&](auto D) {
            if (small_) spread_small<D, MESH_ORDER>(mesh, points, charges, grid);
            else spread_parts<D, MESH_ORDER>(mesh, points, charges, grid);
        });
    }

private:
    static constexpr std::int64_t MOST = 128;      // parts besides one of each strip, about; chosen
    static constexpr std::int64_t ROOM = 1 << 21;  // nodes of patches that are acceptable for any mesh; chosen
    const int threads_;
    const bool small_;
    const std::int64_t n_, strips_, plane_, stride_, blocks_, shares_, per_part_, most_parts_;
    Buffer<std::int32_t> key_, order_;  // strip s contains order[start[s]] .. order[start[s+1] - 1], ascending
    Buffer<std::int64_t> next_, start_, first_part_, strip_;
    Buffer<R> patches_;

    static std::int64_t stride(const Mesh &mesh, int m) {
        const std::int64_t height = STRIP + MESH_ORDER - 1 < mesh.size[0] ? STRIP + MESH_ORDER - 1 : mesh.size[0];
        return m * height * (mesh.nodes() / mesh.size[0]) + MESH_PADDING;
    }
    // Parts besides one of each strip. A part costs its patch: on large meshes there are fewer.
    static std::int64_t extra(const Mesh &mesh, int m) {
        const std::int64_t room = (2 * m * mesh.nodes() + ROOM) / stride(mesh, m);
        return room < 1 ? 1 : room < MOST ? room : MOST;
    }

    // Nodes that the points of strip s touch: rows low .. high - 1 along the first axis.
    struct Reach {
        std::int64_t low, high;
    };
    template <int P> static Reach reach(const Mesh &mesh, std::int64_t s) {
        const std::int64_t low = s * STRIP - (P / 2 - 1), high = (s + 1) * STRIP + P / 2;
        return {low > 0 ? low : 0, high < mesh.size[0] ? high : mesh.size[0]};
    }

    // Each share of the points gets a separate mesh.
    template <int D, int P> void spread_small(const Mesh &mesh, Points<R> points, Charges charges, R *grid) {
        const std::int64_t nodes = mesh.nodes(), size = nodes * charges.m, width = size + MESH_PADDING;
        R *const own = patches_.data;
        parallel_for(shares_, 1, threads_, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t s = first; s < last; ++s) {
                for (std::int64_t t = 0; t < width; ++t) own[s * width + t] = R(0);
                spread_points<D, P, R>(
                    mesh, points.data, charges, n_ * s / shares_, n_ * (s + 1) / shares_,
                    [](std::int64_t i) { return i; }, {own + s * width, 0, nodes}, 0, nodes);
            }
        });
        parallel_for(size, 1024, shares_ > 1 ? threads_ : 1, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t t = first; t < last; ++t) grid[t] = own[t];
            for (std::int64_t s = 1; s < shares_; ++s)
                for (std::int64_t t = first; t < last; ++t) grid[t] += own[s * width + t];
        });
    }

    template <int D, int P> void spread_parts(const Mesh &mesh, Points<R> points, Charges charges, R *grid) {
        sort<P>(mesh, points);
        std::int64_t parts = 0;
        for (std::int64_t s = 0; s < strips_; ++s) {
            first_part_[s] = parts;
            for (std::int64_t i = start_[s]; i < start_[s + 1]; i += per_part_) strip_[parts++] = s;
        }
        first_part_[strips_] = parts;
        const auto in_order = [&](std::int64_t t) { return std::int64_t(order_[t]); };
        parallel_for(parts, 1, threads_, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t p = first; p < last; ++p) {
                const std::int64_t s = strip_[p], begin = start_[s] + (p - first_part_[s]) * per_part_;
                const std::int64_t end = begin + per_part_ < start_[s + 1] ? begin + per_part_ : start_[s + 1];
                const Reach rows = reach<P>(mesh, s);
                const std::int64_t node = rows.low * plane_, size = (rows.high - rows.low) * plane_;
                R *const patch = patches_.data + p * stride_;
                for (std::int64_t t = 0; t < stride_; ++t) patch[t] = R(0);
                spread_points<D, P, R>(mesh, points.data, charges, begin, end, in_order, {patch, node, size}, node,
                                       size);
            }
        });
        const std::int64_t several = plane_ < 1024 ? 1024 / plane_ : 1;
        parallel_for(mesh.size[0], several, threads_, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t row = first; row < last; ++row) add_patches<P>(mesh, row, charges.m, grid);
        });
    }

    // Writes the sums of all patches to a row of the mesh, in float64 at first.
    template <int P> void add_patches(const Mesh &mesh, std::int64_t row, int m, R *grid) const {
        constexpr std::int64_t WIDTH = 256;  // nodes at a time, 2 kB
        const std::int64_t nodes = mesh.nodes(), middle = row / STRIP;
        for (int q = 0; q < m; ++q)
            for (std::int64_t t = 0; t < plane_; t += WIDTH) {
                const std::int64_t width = plane_ - t < WIDTH ? plane_ - t : WIDTH;
                double sum[WIDTH] = {};
                for (std::int64_t s = middle > 0 ? middle - 1 : 0; s <= middle + 1 && s < strips_; ++s) {
                    const Reach rows = reach<P>(mesh, s);
                    if (row < rows.low || row >= rows.high) continue;
                    const std::int64_t at = (q * (rows.high - rows.low) + row - rows.low) * plane_ + t;
                    for (std::int64_t p = first_part_[s]; p < first_part_[s + 1]; ++p) {
                        const R *const from = patches_.data + p * stride_ + at;
                        for (std::int64_t k = 0; k < width; ++k) sum[k] += double(from[k]);
                    }
                }
                R *const to = grid + q * nodes + row * plane_ + t;
                for (std::int64_t k = 0; k < width; ++k) to[k] = R(sum[k]);
            }
    }

    // Sorts the points by strip: blocks of points are counted, and then placed, in parallel.
    template <int P> void sort(const Mesh &mesh, Points<R> Y) {
        const auto for_blocks = [&](const auto &use) {
            parallel_for(blocks_, 1, threads_, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t b = first; b < last; ++b) use(b, n_ * b / blocks_, n_ * (b + 1) / blocks_);
            });
        };
        for_blocks([&](std::int64_t b, std::int64_t first, std::int64_t last) {
            std::int64_t *const own = next_.data + b * strips_;  // points of the block in each strip
            for (std::int64_t s = 0; s < strips_; ++s) own[s] = 0;
            for (std::int64_t i = first; i < last; ++i) {
                key_[i] = std::int32_t(Position<P, R>(mesh, 0, Y.data[i * Y.d]).cell / STRIP);
                ++own[key_[i]];
            }
        });
        std::int64_t total = 0;
        for (std::int64_t s = 0; s < strips_; ++s) {
            start_[s] = total;
            for (std::int64_t b = 0; b < blocks_; ++b) {
                const std::int64_t size = next_[b * strips_ + s];
                next_[b * strips_ + s] = total;  // from here on, where its next point goes
                total += size;
            }
        }
        start_[strips_] = total;
        for_blocks([&](std::int64_t b, std::int64_t first, std::int64_t last) {
            std::int64_t *const own = next_.data + b * strips_;
            for (std::int64_t i = first; i < last; ++i) order_[own[key_[i]]++] = std::int32_t(i);
        });
    }
};

template <int D, int P, class R>
void gather_in(const Mesh &mesh, Points<R> points, const R *grid, int m, FieldSums out, int threads) {
    const std::int64_t n = points.n, nodes = mesh.nodes();
    const R *const Y = points.data;
    const R half = R(0.5 * mesh.inverse_h);
    const auto gather_point = [&](std::int64_t i) {
        const Stencil<D, P, R> stencil(mesh, Y + i * D);
        for (int q = 0; q < m; ++q) {
            const R *in = grid + q * nodes;
            Run<P, R> v = {}, v0 = {}, v1 = {};  // Σ weight · run, and the same with the derivatives of the weight
            for_runs(mesh, stencil, [&](std::int64_t first, R weight, R d0, R d1) {
                const Run<P, R> run = load<P>(in + first);
                v += weight * run;
                if constexpr (D >= 2) v0 += d0 * run;
                if constexpr (D == 3) v1 += d1 * run;
            });
            const R phi = sum<P, R>(v * stencil.w[D - 1]);
            R g[3] = {0, 0, 0};
            g[D - 1] = sum<P, R>(v * stencil.dw[D - 1]);
            if constexpr (D >= 2) g[0] = sum<P, R>(v0 * stencil.w[D - 1]);
            if constexpr (D == 3) g[1] = sum<P, R>(v1 * stencil.w[D - 1]);
            out.potential[i * m + q] = phi;
            for (int c = 0; c < D; ++c) out.half_gradient[(i * m + q) * D + c] = half * g[c];
        }
    };
    parallel_for(n, 512, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) gather_point(i);
    });
}

template <class R> void spread(const Mesh &mesh, Points<R> Y, Charges charges, R *grid, int threads) {
    Spread<R>(mesh, Y.n, charges.m, threads).apply(mesh, Y, charges, grid);
}

template <class R> void gather(const Mesh &mesh, Points<R> Y, const R *grid, int m, FieldSums out, int threads) {
    with_mesh(mesh, [&](auto D) { gather_in<D, MESH_ORDER, R>(mesh, Y, grid, m, out, threads); });
}

}  // namespace EQ_ISA
}  // namespace eq
