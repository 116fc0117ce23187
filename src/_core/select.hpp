// The nearest of many candidates: the k smallest numbers of each row, without sorting the row.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace eq {

// For each row of dots (rows, columns): the columns of the k smallest norm - 2 dot, from the smallest on; of equal ones the
// first. All must be finite. What lies above the k-th smallest of the numbers seen so far is passed over eight at a time.
inline void nearest(const float *dots, const float *norms, std::int64_t rows, std::int64_t columns, std::int64_t k,
                    std::int32_t *out) {
    struct Found {
        float value;
        std::int32_t column;
        bool operator<(const Found &other) const {
            return value < other.value || (value == other.value && column < other.column);
        }
    };
    std::vector<Found> found(std::size_t(3 * k + 8));
    for (std::int64_t i = 0; i < rows; ++i) {
        const float *dot = dots + i * columns;
        const auto first = found.begin();
        std::int64_t size = 0;
        float limit = std::numeric_limits<float>::infinity();
        for (std::int64_t t = 0; t < columns; t += 8) {
            const int width = int(columns - t < 8 ? columns - t : 8);
            float value[8];
            int below = 0;
            for (int l = 0; l < 8; ++l) value[l] = l < width ? norms[t + l] - 2 * dot[t + l] : limit;
            for (int l = 0; l < 8; ++l) below += value[l] < limit;
            if (below == 0) continue;
            for (int l = 0; l < width; ++l)
                if (value[l] < limit) found[std::size_t(size++)] = {value[l], std::int32_t(t + l)};
            if (size > 3 * k) {
                std::nth_element(first, first + k - 1, first + size);
                size = k;
                limit = found[std::size_t(k - 1)].value;
            }
        }
        std::nth_element(first, first + k - 1, first + size);
        std::sort(first, first + k);
        for (std::int64_t t = 0; t < k; ++t) out[i * k + t] = found[std::size_t(t)].column;
    }
}

}  // namespace eq
