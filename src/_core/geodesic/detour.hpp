// The triangle inequality of a distance matrix: the shortest detour min_z d(x, z) + d(z, y) of every pair.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "threads/parallel.hpp"

namespace eq {

inline double smaller(double a, double b) { return a < b ? a : b; }  // one instruction, unlike std::min

// For each x the largest d(x, y) - min_z (d(x, z) + d(z, y)) over y, and that y. D is (n, n).
inline void longest_excess(const double *D, std::int64_t n, double *excess, std::int64_t *argmax, int threads) {
    constexpr std::int64_t rows = 8, columns = 512;  // a tile of detours fits in the L1 cache
    const auto find = [&](std::int64_t first) {
        const std::int64_t height = std::min(rows, n - first);
        double best[rows * columns];
        std::fill(excess + first, excess + first + height, -std::numeric_limits<double>::infinity());
        for (std::int64_t left = 0; left < n; left += columns) {
            const std::int64_t width = std::min(columns, n - left);
            std::fill(best, best + rows * columns, std::numeric_limits<double>::infinity());
            for (std::int64_t z = 0; z < n; z += 4) {  // four at a time; the last one repeats if fewer are left
                std::int64_t four[4];
                for (int k = 0; k < 4; ++k) four[k] = std::min(z + k, n - 1);
                const double *t0 = D + four[0] * n + left, *t1 = D + four[1] * n + left;
                const double *t2 = D + four[2] * n + left, *t3 = D + four[3] * n + left;
                for (std::int64_t i = 0; i < height; ++i) {
                    const double *from = D + (first + i) * n;
                    const double f0 = from[four[0]], f1 = from[four[1]], f2 = from[four[2]], f3 = from[four[3]];
                    double *row = best + i * columns;
                    for (std::int64_t y = 0; y < width; ++y) {
                        const double a = smaller(f0 + t0[y], f1 + t1[y]), b = smaller(f2 + t2[y], f3 + t3[y]);
                        row[y] = smaller(row[y], smaller(a, b));
                    }
                }
            }
            for (std::int64_t i = 0; i < height; ++i)
                for (std::int64_t y = 0; y < width; ++y) {
                    const double over = D[(first + i) * n + left + y] - best[i * columns + y];
                    if (over > excess[first + i]) {
                        excess[first + i] = over;
                        argmax[first + i] = left + y;
                    }
                }
        }
    };
    parallel_for((n + rows - 1) / rows, 1, threads, [&](std::int64_t from, std::int64_t to, int) {
        for (std::int64_t block = from; block < to; ++block) find(block * rows);
    });
}

}  // namespace eq
