// The triangle inequality of a distance matrix: the shortest detour min_z d(x, z) + d(z, y) of every pair.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace eq {

// For each x the largest d(x, y) - min_z (d(x, z) + d(z, y)) over y, and that y. D is (n, n).
inline void longest_excess(const double *D, std::int64_t n, double *excess, std::int64_t *where, int threads) {
    constexpr std::int64_t rows = 8, columns = 512;  // a tile of detours stays in the nearest cache
#pragma omp parallel for schedule(static) num_threads(threads)
    for (std::int64_t first = 0; first < n; first += rows) {
        const std::int64_t height = std::min(rows, n - first);
        double best[rows * columns];
        std::fill(excess + first, excess + first + height, -std::numeric_limits<double>::infinity());
        for (std::int64_t left = 0; left < n; left += columns) {
            const std::int64_t width = std::min(columns, n - left);
            std::fill(best, best + rows * columns, std::numeric_limits<double>::infinity());
            for (std::int64_t z = 0; z < n; ++z) {
                const double *to = D + z * n + left;
                for (std::int64_t i = 0; i < height; ++i) {
                    const double via = D[(first + i) * n + z];
                    double *row = best + i * columns;
                    for (std::int64_t y = 0; y < width; ++y) row[y] = via + to[y] < row[y] ? via + to[y] : row[y];
                }
            }
            for (std::int64_t i = 0; i < height; ++i)
                for (std::int64_t y = 0; y < width; ++y) {
                    const double over = D[(first + i) * n + left + y] - best[i * columns + y];
                    if (over > excess[first + i]) {
                        excess[first + i] = over;
                        where[first + i] = left + y;
                    }
                }
        }
    }
}

}  // namespace eq
