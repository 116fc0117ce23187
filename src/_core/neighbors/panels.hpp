// Squared distances between a few queries and many points, which are stored in panels (types.hpp). Each distance is
// summed over the coordinates in order, by itself: its bytes depend neither on the other points nor on the blocks.
#pragma once
#include <limits>

#include "simd/scratch.hpp"
#include "simd/vector8.hpp"

namespace eq {
namespace EQ_ISA {

constexpr float INF = std::numeric_limits<float>::infinity();
constexpr int TILE_ROWS = 6;    // queries per tile: with 2 panels, 12 sums and their operands fill 16 registers
constexpr int TILE_PANELS = 2;  // panels per tile

EQ_INLINE Vector broadcast(float x) { return Vector{x, x, x, x, x, x, x, x}; }
EQ_INLINE void store(float *to, Vector x) { std::memcpy(to, &x, sizeof x); }

// Writes ‖x‖² - 2 q·x for ROWS queries and the points of WIDTH panels to rows of `out`, `stride` apart. With
// DIFFERENCES it writes ‖q - x‖², summed from differences, which is slower and loses no digits to cancellation.
template <int ROWS, int WIDTH, bool DIFFERENCES>
inline void tile(const float *const *rows, const Panels &points, const std::int32_t *panels, float *out,
                 std::int64_t stride) {
    const float *x[WIDTH];
    for (int w = 0; w < WIDTH; ++w) x[w] = points.data + std::int64_t(panels[w]) * points.d * PANEL;
    Vector sum[ROWS][WIDTH] = {};
    for (int c = 0; c < points.d; ++c) {
        Vector at[WIDTH];
        for (int w = 0; w < WIDTH; ++w) at[w] = load(x[w] + c * PANEL);
        for (int r = 0; r < ROWS; ++r) {
            const Vector q = broadcast(rows[r][c]);
            for (int w = 0; w < WIDTH; ++w)
                if constexpr (DIFFERENCES) sum[r][w] += (at[w] - q) * (at[w] - q);
                else sum[r][w] += at[w] * q;
        }
    }
    for (int w = 0; w < WIDTH; ++w) {
        const Vector norm = load(points.norms + std::int64_t(panels[w]) * PANEL), inf = broadcast(INF);
        for (int r = 0; r < ROWS; ++r)
            if constexpr (DIFFERENCES) store(out + r * stride + w * PANEL, norm < inf ? sum[r][w] : inf);
            else store(out + r * stride + w * PANEL, norm - 2 * sum[r][w]);
    }
}

using Tile = void (*)(const float *const *, const Panels &, const std::int32_t *, float *, std::int64_t);

template <int WIDTH, bool DIFFERENCES> EQ_INLINE Tile tile_of(int rows) {
    constexpr Tile tiles[TILE_ROWS] = {tile<1, WIDTH, DIFFERENCES>, tile<2, WIDTH, DIFFERENCES>,
                                       tile<3, WIDTH, DIFFERENCES>, tile<4, WIDTH, DIFFERENCES>,
                                       tile<5, WIDTH, DIFFERENCES>, tile<6, WIDTH, DIFFERENCES>};
    return tiles[rows - 1];
}

// Writes the distances of m queries to `count` panels to `out` (m, stride).
template <bool DIFFERENCES>
inline void products(const float *const *rows, std::int64_t m, const Panels &points, const std::int32_t *panels,
                     std::int64_t count, float *out, std::int64_t stride) {
    const std::int64_t tiles = (m + TILE_ROWS - 1) / TILE_ROWS;
    for (std::int64_t p = 0; p < count; p += TILE_PANELS)
        for (std::int64_t t = 0; t < tiles; ++t) {  // tiles of nearly the same size
            const std::int64_t first = m * t / tiles;
            const int height = int(m * (t + 1) / tiles - first);
            const Tile run =
                p + 1 < count ? tile_of<TILE_PANELS, DIFFERENCES>(height) : tile_of<1, DIFFERENCES>(height);
            run(rows + first, points, panels + p, out + first * stride + p * PANEL, stride);
        }
}

}  // namespace EQ_ISA
}  // namespace eq
