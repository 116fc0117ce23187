// One optimiser step: momentum with gains, in one pass over the points.
#pragma once
#include <cmath>

#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

template <class R>
void momentum_step(const Step &step, const double *gradient, std::int64_t n, int d, R *velocity, R *gain) {
    const R momentum = R(step.momentum), up = R(step.gain_up), down = R(step.gain_down), least = R(step.min_gain);
    const R cap = R(step.max_step);
    for (std::int64_t i = 0; i < n; ++i) {
        R length = 0;
        for (std::int64_t t = i * d; t < (i + 1) * d; ++t) {
            const double push = step.rate * gradient[t], turn = push * velocity[t];  // > 0: the last step went uphill
            R g = gain[t];
            if (turn <= 0) g += up;
            else if (g * turn > step.turned * velocity[t] * velocity[t]) g *= down;
            g = g < least ? least : g;
            gain[t] = g;
            velocity[t] = momentum * velocity[t] - R(g * push);
            length += velocity[t] * velocity[t];
        }
        length = std::sqrt(length);
        if (length > cap)
            for (std::int64_t t = i * d; t < (i + 1) * d; ++t) velocity[t] *= cap / length;
    }
}

}  // namespace EQ_ISA
}  // namespace eq
