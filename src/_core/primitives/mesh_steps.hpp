// Whole iterations on a mesh: edges, field, momentum, centring and the box of the map, each in parallel passes over the
// points. Sums have a fixed order, so that the map does not depend on the number of threads, and the arithmetic is that
// of the separate functions, so that it does not depend on who takes the steps.
#pragma once
#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>

#include "primitives/exact.hpp"
#include "primitives/fourier.hpp"
#include "primitives/mesh.hpp"
#include "primitives/momentum.hpp"
#include "primitives/near_field.hpp"

namespace eq {
namespace EQ_ISA {

template <class R> class MeshDescent {
public:
    MeshDescent(const MeshSteps &steps, const MeshKernel<R> &kernel, const MovingMap &map, int threads)
        : steps_(steps), kernel_(kernel), map_(map), threads_(threads), mesh_(kernel.mesh),
          convolution_(kernel.mesh, threads), blocks_(step_blocks(map.n)), m_(steps.charges == nullptr ? 1 : 2),
          spread_(kernel.mesh, map.n, m_, threads),
          ones_(m_ == 1 ? map.n : 1, UNINITIALIZED), force_(map.n * map.d, UNINITIALIZED),
          potential_(map.n * m_, UNINITIALIZED), half_gradient_(map.n * m_ * map.d, UNINITIALIZED),
          grid_(m_ * kernel.mesh.nodes() + MESH_PADDING, UNINITIALIZED),
          copy_(SAME ? 1 : map.n * map.d, UNINITIALIZED), sums_(blocks_ * map.d, UNINITIALIZED),
          boxes_(blocks_ * 2 * map.d, UNINITIALIZED) {
        for (int t = 0; t < MESH_PADDING; ++t) grid_[m_ * mesh_.nodes() + t] = R(0);
        const float nothing[3] = {0, 0, 0};
        for_step_blocks(map.n, threads, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last && m_ == 1; ++i) ones_[i] = 1.0;
            shift_and_bound(b, first, last, nothing);
        });
        join_boxes();
    }

    // Returns the number of steps taken. A step that cannot be taken changes nothing.
    std::int64_t run() {
        using Clock = std::chrono::steady_clock;
        const auto start = Clock::now();
        std::int64_t taken = 0;
        while (taken < steps_.count && fits()) {
            if (taken > 0 && std::chrono::duration<double>(Clock::now() - start).count() > steps_.seconds) break;
            forces();
            const double Z = m_ == 1 ? total_potential() : 1;
            if (!(Z > 0)) break;
            Step step = steps_.step;
            step.momentum = steps_.momentum[taken];
            move(step, steps_.push / Z);
            ++taken;
        }
        return taken;
    }

private:
    static constexpr bool SAME = std::is_same<R, float>::value;
    static constexpr std::int64_t ROWS = 64;  // of edges at a time, 10 µs for 140 neighbours; chosen
    const MeshSteps &steps_;
    const MeshKernel<R> &kernel_;
    const MovingMap map_;
    const int threads_;
    Mesh mesh_;
    Convolution<R> convolution_;
    const std::int64_t blocks_;
    const int m_;  // charges per point
    Spread<R> spread_;
    Buffer<double> ones_;  // the charges, if m_ is 1
    Buffer<double> force_, potential_, half_gradient_;
    Buffer<R> grid_, copy_;  // the copy is the map in the precision of the mesh
    Buffer<double> sums_;    // of the blocks, (blocks, d)
    Buffer<float> boxes_;    // lower and upper corners of the blocks, (blocks, 2, d)
    double low_[3] = {0, 0, 0}, high_[3] = {0, 0, 0};

    // Whether the map is finite and the mesh fits it.
    bool fits() const {
        double side[3], widest = 0;
        for (int c = 0; c < map_.d; ++c) {
            side[c] = high_[c] - low_[c];
            if (!std::isfinite(side[c])) return false;
            widest = side[c] > widest ? side[c] : widest;
        }
        if (widest < steps_.narrow) return false;
        const double thin = widest * steps_.thin, shortest = thin > steps_.tiny ? thin : steps_.tiny;
        for (int c = 0; c < map_.d; ++c) {
            const double raised = side[c] > shortest ? side[c] : shortest;
            if (!(raised > steps_.lower[c] && raised < steps_.upper[c])) return false;
        }
        return true;
    }

    // Fills the edges and the field. Edges are computed while threads wait for each other in the field, and after it.
    void forces() {
        const Points<float> U{map_.U, map_.n, map_.d};
        const bool supported = sparse_edges_of_map(
            steps_.kernel, steps_.A, U, {nullptr, force_.data}, threads_, [&](std::int64_t n, const auto &row) {
                const auto some = [&](std::int64_t first, std::int64_t last) {
                    for (std::int64_t i = first; i < last; ++i) row(i);
                };
                const auto run = [](void *context, std::int64_t first, std::int64_t last, int) {
                    (*static_cast<decltype(&some)>(context))(first, last);
                };
                Meanwhile rows({run, const_cast<void *>(static_cast<const void *>(&some)), n, ROWS});
                field();
                rows.finish(threads_);
            });
        if (supported) return;
        edges<float>(steps_.kernel, -1, steps_.A, U, {nullptr, force_.data}, threads_);
        field();
    }

    // Fills half the gradient of the potential and, if m_ is 1, the potential with self terms.
    void field() {
        const std::int64_t n = map_.n, nodes = mesh_.nodes();
        const int d = map_.d;
        const Charges charges{m_ == 1 ? ones_.data : steps_.charges, m_};
        const FieldSums out{potential_.data, half_gradient_.data};
        for (int c = 0; c < d; ++c)
            mesh_.origin[c] = (low_[c] + high_[c]) / 2 - double(mesh_.size[c] - 1) / 2 * kernel_.h;
        const Points<R> Y{in_precision(), n, d};
        spread_.apply(mesh_, Y, charges, grid_.data);
        for (int q = 0; q < m_; ++q) convolution_.apply(kernel_.frequencies, grid_.data + q * nodes);
        gather<R>(mesh_, Y, grid_.data, m_, out, threads_);
        if (!(kernel_.radius > 0)) return;
        if (m_ == 1) {  // before the near field, as in the separate functions
            const double shift = kernel_.shift * double(n);
            for_step_blocks(n, threads_, [&](std::int64_t, std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) potential_[i] += shift;
            });
        }
        Mesh cells;
        cells.d = d;
        cells.inverse_h = 1 / kernel_.radius;
        for (int c = 0; c < d; ++c) {
            cells.origin[c] = low_[c];
            cells.size[c] = std::int64_t(std::floor((high_[c] - low_[c]) / kernel_.radius)) + 1;
        }
        near<R>(cells, kernel_.near, {nullptr, 0, d}, Y, charges, out, threads_);
    }

    // Z, the sum of the potential of unit charges without self terms.
    double total_potential() const {
        const double shift = kernel_.radius > 0 ? 0 : kernel_.shift * double(map_.n), own = kernel_.at_zero;
        return parallel_sum([&](std::int64_t i) { return (potential_[i] + shift) - own; }, map_.n, threads_);
    }

    const R *in_precision() {
        if constexpr (SAME) return map_.U;
        else {
            const int d = map_.d;
            for_step_blocks(map_.n, threads_, [&](std::int64_t, std::int64_t first, std::int64_t last) {
                for (std::int64_t t = first * d; t < last * d; ++t) copy_[t] = R(map_.U[t]);
            });
            return copy_.data;
        }
    }

    // One step along the force; then the map is centred and its box found.
    void move(const Step &step, double push) {
        const int d = map_.d;
        const double pull = steps_.pull, *const force = force_.data, *const half = half_gradient_.data;
        if (m_ == 1)
            move_along(step, [=](std::int64_t i, int c) {
                return -(pull * force[i * d + c] + push * (2 * half[i * d + c]));
            });
        else {
            const double *const charges = steps_.charges;
            move_along(step, [=](std::int64_t i, int c) {
                const double *const first = half + 2 * i * d, *const second = first + d;
                return -(pull * force[i * d + c] + push * (charges[2 * i + 1] * (2 * first[c]) + 2 * second[c]));
            });
        }
        float mean[3];
        mean_of_blocks(sums_.data, map_.n, d, mean);
        for_step_blocks(map_.n, threads_, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
            shift_and_bound(b, first, last, mean);
        });
        join_boxes();
    }

    // Moves the points, where gradient(i, c) is the gradient of point i along axis c, and sums the points of each block.
    template <class Gradient> void move_along(const Step &step, const Gradient &gradient) {
        const int d = map_.d;
        for_step_blocks(map_.n, threads_, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
                float *const U = map_.U + i * d, *const velocity = map_.velocity + i * d;
                momentum_point(step, d, [&](int c) { return gradient(i, c); }, velocity, map_.gain + i * d);
                for (int c = 0; c < d; ++c) U[c] += velocity[c];
            }
            sum_rows(map_.U, d, first, last, sums_.data + b * d);
        });
    }

    // Subtracts a row from the points of a block, and finds their box; the box of NaN is NaN.
    void shift_and_bound(std::int64_t block, std::int64_t first, std::int64_t last, const float *row) {
        const int d = map_.d;
        constexpr float INF = std::numeric_limits<float>::infinity();
        for (int c = 0; c < d; ++c) {
            float low[4] = {INF, INF, INF, INF}, high[4] = {-INF, -INF, -INF, -INF}, nan[4] = {0, 0, 0, 0};
            const auto add = [&](std::int64_t i, int l) {
                const float u = map_.U[i * d + c] -= row[c];
                low[l] = u < low[l] ? u : low[l];
                high[l] = u > high[l] ? u : high[l];
                nan[l] += u - u;
            };
            std::int64_t i = first;
            for (; i + 4 <= last; i += 4)
                for (int l = 0; l < 4; ++l) add(i + l, l);
            for (; i < last; ++i) add(i, 0);
            for (int l = 1; l < 4; ++l) {
                low[0] = low[l] < low[0] ? low[l] : low[0];
                high[0] = high[l] > high[0] ? high[l] : high[0];
                nan[0] += nan[l];
            }
            boxes_[(2 * block) * d + c] = low[0] + nan[0];
            boxes_[(2 * block + 1) * d + c] = high[0] + nan[0];
        }
    }

    void join_boxes() {
        const int d = map_.d;
        for (int c = 0; c < d; ++c) {
            float low = boxes_[c], high = boxes_[d + c], nan = 0;
            for (std::int64_t b = 0; b < blocks_; ++b) {
                const float l = boxes_[2 * b * d + c], h = boxes_[(2 * b + 1) * d + c];
                low = l < low ? l : low;
                high = h > high ? h : high;
                nan += (h - h) + (l - l);
            }
            low_[c] = low + nan;
            high_[c] = high + nan;
        }
    }
};

template <class R>
std::int64_t mesh_steps(const MeshSteps &steps, const MeshKernel<R> &kernel, const MovingMap &map, int threads) {
    return MeshDescent<R>(steps, kernel, map, threads).run();
}

}  // namespace EQ_ISA
}  // namespace eq
