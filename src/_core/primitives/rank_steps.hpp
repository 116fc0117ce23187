// The parts of an iteration that a process makes for its own points, when several processes share a map: charges on the
// mesh as integers, whose sums over the processes do not depend on their order; and steps with the sums and boxes of
// blocks of points, which the processes combine in a fixed order. docs/math.md, section 22.
#pragma once
#include "primitives/mesh.hpp"
#include "primitives/momentum.hpp"

namespace eq {
namespace EQ_ISA {

// The points sorted by strip of the first axis, and by index inside a strip: strip s contains order[start[s]] ..
// order[start[s+1] - 1]. Blocks of points are counted, and then placed, in parallel.
template <int P, class R> struct Strips {
    std::int64_t count;
    Buffer<std::int32_t> order;
    Buffer<std::int64_t> start;
    Strips(const Mesh &mesh, Points<R> Y, int threads)
        : count((mesh.size[0] + STRIP - 1) / STRIP), order(Y.n, UNINITIALIZED), start(count + 1, UNINITIALIZED) {
        const std::int64_t n = Y.n, blocks = n / 2048 < 64 ? n / 2048 + 1 : 64;
        Buffer<std::int32_t> key(n, UNINITIALIZED);
        Buffer<std::int64_t> next(blocks * count);  // first the points of a block in a strip, then where they go
        const auto for_blocks = [&](const auto &use) {
            parallel_for(blocks, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t b = first; b < last; ++b)
                    for (std::int64_t i = n * b / blocks; i < n * (b + 1) / blocks; ++i) use(i, next.data + b * count);
            });
        };
        for_blocks([&](std::int64_t i, std::int64_t *own) {
            key[i] = std::int32_t(Position<P, R>(mesh, 0, Y.data[i * Y.d]).cell / STRIP);
            ++own[key[i]];
        });
        std::int64_t total = 0;
        for (std::int64_t s = 0; s < count; ++s) {
            start[s] = total;
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int64_t size = next[b * count + s];
                next[b * count + s] = total;
                total += size;
            }
        }
        start[count] = total;
        for_blocks([&](std::int64_t i, std::int64_t *own) { order[own[key[i]]++] = std::int32_t(i); });
    }
};

// Adds round(values), limited to ±2^30 (NaN counts as −2^30), to eight integers.
template <int P, class R> EQ_INLINE void add_rounded(std::int64_t *out, Run<P, R> values) {
    const Run<P, R> zero = {}, limit = zero + R(1 << 30), half = zero + R(0.5);
    Run<P, R> v = values > -limit ? values : -limit;
    v = v < limit ? v : limit;
    v += v < zero ? -half : half;
    const auto whole = __builtin_convertvector(v, Run<P, std::int32_t>);  // truncates
    auto *const sums = reinterpret_cast<Run<P, std::int64_t> *>(out);
    *sums = *sums + __builtin_convertvector(whole, Run<P, std::int64_t>);
}

// Adds the charges of point i, in units of 1/unit, to the mesh.
template <int D, int P, class R>
EQ_INLINE void spread_whole(const Mesh &mesh, const R *Y, Charges charges, double unit, std::int64_t i,
                            std::int64_t nodes, std::int64_t *grid) {
    const Stencil<D, P, R> stencil(mesh, Y + i * D);
    for (int q = 0; q < charges.m; ++q) {
        const R charge = R(charges.data[i * charges.m + q] * unit);
        std::int64_t *const out = grid + q * nodes;
        for_runs(mesh, stencil, [&](std::int64_t first, R weight, R, R) {
            add_rounded<P, R>(out + first, (charge * weight) * stencil.w[D - 1]);
        });
    }
}

// Spreads charges to a mesh (m, nodes) of integers, which is overwritten.
template <class R>
void spread_integers(const Mesh &mesh, Points<R> Y, Charges charges, double unit, std::int64_t *grid, int threads) {
    constexpr int P = MESH_ORDER;
    const std::int64_t nodes = mesh.nodes(), size = nodes * charges.m + MESH_PADDING;
    const Strips<P, R> strips(mesh, Y, threads);
    parallel_for(size, 1 << 15, threads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t t = first; t < last; ++t) grid[t] = 0;
    });
    with_mesh(mesh, [&](auto D) {
        for (int colour = 0; colour < 2; ++colour)  // strips of the same colour never overlap
            parallel_for((strips.count + 1 - colour) / 2, 1, threads, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t s = 2 * first + colour; s < 2 * last + colour; s += 2)
                    for (std::int64_t t = strips.start[s]; t < strips.start[s + 1]; ++t)
                        spread_whole<D, P, R>(mesh, Y.data, charges, unit, strips.order[t], nodes, grid);
            });
    });
}

// One step of momentum along the force pull · E + push ∇Φ, with E and ½∇Φ (n, d), and the sums (blocks, d) of the new
// positions in blocks of STEP_BLOCK points.
inline void move_rows(const Step &step, double pull, double push, const double *edges, const double *half_gradient,
                      const MovingMap &map, double *sums, int threads) {
    const int d = map.d;
    for_step_blocks(map.n, threads, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first * d; i < last * d; i += d) {
            const auto gradient = [&](int c) { return -(pull * edges[i + c] + push * (2 * half_gradient[i + c])); };
            momentum_point(step, d, gradient, map.velocity + i, map.gain + i);
            for (int c = 0; c < d; ++c) map.U[i + c] += map.velocity[i + c];
        }
        sum_rows(map.U, d, first, last, sums + b * d);
    });
}

// Subtracts a row from the points, in place, and writes the lower and the upper corners (blocks, 2, d) of their blocks;
// those of NaN are NaN.
inline void shift_rows(const float *row, std::int64_t n, int d, float *U, float *boxes, int threads) {
    for_step_blocks(n, threads, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
        for (int c = 0; c < d; ++c) {
            float low = U[first * d + c] - row[c], high = low, nan = 0;
            for (std::int64_t i = first; i < last; ++i) {
                const float u = U[i * d + c] -= row[c];
                low = u < low ? u : low;
                high = u > high ? u : high;
                nan += u - u;
            }
            boxes[2 * b * d + c] = low + nan;
            boxes[(2 * b + 1) * d + c] = high + nan;
        }
    });
}

// The sums (blocks, m) of the rows of x (n, m) in blocks of STEP_BLOCK rows.
inline void block_sums(const double *x, std::int64_t n, int m, double *sums, int threads) {
    for_step_blocks(n, threads, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
        for (int c = 0; c < m; ++c)
            sums[b * m + c] = pairwise_sum([&](std::int64_t i) { return x[i * m + c]; }, first, last - first);
    });
}

}  // namespace EQ_ISA
}  // namespace eq
