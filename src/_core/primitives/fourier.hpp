// The convolution on the mesh: discrete Fourier transforms of many lines at once, and products with a real, even
// kernel. A vector contains one element of several lines, so that butterflies need no shuffles. docs/math.md,
// section 10.
#pragma once
#include <cmath>
#include <utility>

#include "primitives/tiles.hpp"

namespace eq {
namespace EQ_ISA {

template <class R> struct Line {  // one element of each of LINES lines
    typedef R type __attribute__((vector_size(VECTOR_BYTES)));
};
template <class R> using Lines = typename Line<R>::type;
template <class R> constexpr int LINES = VECTOR_BYTES / sizeof(R);

template <class R> struct Complex {
    Lines<R> re, im;
};
template <class R> struct Root {  // e^{-iφ}
    R re, im;
};

template <class R> EQ_INLINE Complex<R> operator+(Complex<R> a, Complex<R> b) { return {a.re + b.re, a.im + b.im}; }
template <class R> EQ_INLINE Complex<R> operator-(Complex<R> a, Complex<R> b) { return {a.re - b.re, a.im - b.im}; }
template <class R> EQ_INLINE Complex<R> operator*(R s, Complex<R> a) { return {s * a.re, s * a.im}; }
// a e^{-iφ}, or a e^{iφ} for the inverse.
template <bool BACK, class R> EQ_INLINE Complex<R> turn(Complex<R> a, Root<R> w) {
    const R im = BACK ? -w.im : w.im;
    return {a.re * w.re - a.im * im, a.re * im + a.im * w.re};
}
// -i a, or i a for the inverse.
template <bool BACK, class R> EQ_INLINE Complex<R> quarter(Complex<R> a) {
    return BACK ? Complex<R>{-a.im, a.re} : Complex<R>{a.im, -a.re};
}

template <class R> Root<R> root(std::int64_t k, std::int64_t n) {  // e^{-2πi k/n}
    const double angle = -2 * 3.141592653589793238 * double(k) / double(n);
    return {R(std::cos(angle)), R(std::sin(angle))};
}

// b_k = Σ_j a_j e^{-2πi jk/F} in place, for F = 2, 3, 4, 5.
template <int F, bool BACK, class R> EQ_INLINE void butterfly(Complex<R> *a) {
    if constexpr (F == 2) {
        const Complex<R> b = a[0];
        a[0] = b + a[1];
        a[1] = b - a[1];
    } else if constexpr (F == 3) {
        const Complex<R> sum = a[1] + a[2], across = quarter<BACK>(R(0.86602540378443864676) * (a[1] - a[2]));
        const Complex<R> middle = a[0] - R(0.5) * sum;
        a[0] = a[0] + sum;
        a[1] = middle + across;
        a[2] = middle - across;
    } else if constexpr (F == 4) {
        const Complex<R> even = a[0] + a[2], odd = a[1] + a[3], left = a[0] - a[2], right = quarter<BACK>(a[1] - a[3]);
        a[0] = even + odd;
        a[1] = left + right;
        a[2] = even - odd;
        a[3] = left - right;
    } else {
        constexpr R c1 = R(0.30901699437494742410), c2 = R(-0.80901699437494742410);  // cos(2π/5), cos(4π/5)
        constexpr R s1 = R(0.95105651629515357212), s2 = R(0.58778525229247312917);   // sin(2π/5), sin(4π/5)
        const Complex<R> p = a[1] + a[4], q = a[2] + a[3], u = a[1] - a[4], v = a[2] - a[3];
        const Complex<R> near = a[0] + c1 * p + c2 * q, far = a[0] + c2 * p + c1 * q;
        const Complex<R> x = quarter<BACK>(s1 * u + s2 * v), y = quarter<BACK>(s2 * u - s1 * v);
        a[0] = a[0] + p + q;
        a[1] = near + x;
        a[2] = far + y;
        a[3] = far - y;
        a[4] = near - x;
    }
}

// Transforms of lines of n = 2^a 3^b 5^c elements along one axis, padded with n zeros: of the 2n frequencies, the even
// ones are those of the line and the odd ones those of the line times e^{-πi j/n}, so the zeros are never stored.
template <class R> class Axis {
public:
    std::int64_t n;

    explicit Axis(std::int64_t n_) : n(n_), half_(n_), roots_(n_) {
        for (std::int64_t j = 0; j < n; ++j) half_[j] = root<R>(j, 2 * n);
        std::int64_t rest = n, used = 0;
        while (rest > 1) {
            const int F = rest % 4 == 0 ? 4 : rest % 2 == 0 ? 2 : rest % 3 == 0 ? 3 : 5;
            factors_[stages_++] = F;
            for (std::int64_t p = 0; p < rest / F; ++p)
                for (int k = 1; k < F; ++k) roots_[used++] = root<R>(p * k, rest);
            rest /= F;
        }
    }

    // Multiplies by e^{-πi j/n}, which turns odd frequencies into even ones; BACK reverses it.
    template <bool BACK> EQ_INLINE Complex<R> shift(Complex<R> a, std::int64_t j) const {
        return turn<BACK>(a, half_[j]);
    }

    // X_k = Σ_j x_j e^{∓2πi jk/n}, unscaled, by Stockham's algorithm. Returns a pointer to the result: x or work.
    template <bool BACK> Complex<R> *transform(Complex<R> *x, Complex<R> *work) const {
        std::int64_t rest = n, stride = 1;
        const Root<R> *w = roots_.data;
        for (int s = 0; s < stages_; ++s) {
            const int F = factors_[s];
            if (F == 4) stage<4, BACK>(x, work, rest, stride, w);
            else if (F == 2) stage<2, BACK>(x, work, rest, stride, w);
            else if (F == 3) stage<3, BACK>(x, work, rest, stride, w);
            else stage<5, BACK>(x, work, rest, stride, w);
            w += rest / F * (F - 1);
            rest /= F;
            stride *= F;
            std::swap(x, work);
        }
        return x;
    }

private:
    Buffer<Root<R>> half_, roots_;
    int factors_[40] = {}, stages_ = 0;

    template <int F, bool BACK>
    static void stage(const Complex<R> *x, Complex<R> *y, std::int64_t rest, std::int64_t stride, const Root<R> *w) {
        const std::int64_t m = rest / F;
        for (std::int64_t p = 0; p < m; ++p, w += F - 1)
            for (std::int64_t q = 0; q < stride; ++q) {
                Complex<R> a[F];
#pragma GCC unroll 5
                for (int j = 0; j < F; ++j) a[j] = x[q + stride * (p + j * m)];
                butterfly<F, BACK>(a);
                y[q + stride * F * p] = a[0];
#pragma GCC unroll 5
                for (int k = 1; k < F; ++k) y[q + stride * (F * p + k)] = turn<BACK>(a[k], w[k - 1]);
            }
    }
};

// Transposes a square of vectors (rows and lanes), one bit of the index at a time.
template <class R, int S, std::size_t... I>
EQ_INLINE void exchange(Lines<R> &a, Lines<R> &b, std::index_sequence<I...>) {
    constexpr int L = LINES<R>;
    const Lines<R> low = __builtin_shufflevector(a, b, int(I & S ? L + I - S : I)...);
    b = __builtin_shufflevector(a, b, int(I & S ? L + I : I + S)...);
    a = low;
}
template <class R, int S = LINES<R> / 2> EQ_INLINE void transpose(Lines<R> *rows) {
    if constexpr (S > 0) {
#pragma GCC unroll 8
        for (int i = 0; i < LINES<R>; ++i)
            if (!(i & S)) exchange<R, S>(rows[i], rows[i + S], std::make_index_sequence<LINES<R>>{});
        transpose<R, S / 2>(rows);
    }
}

// The spectrum of real rows along the last axis: n + 1 frequencies, even ones first, LINES of them in a vector; a block
// of vectors contains one group of frequencies for all rows. Two rows are transformed as one complex line, re and im.
template <class R> class Rows {
public:
    std::int64_t rows, groups;

    Rows(const Axis<R> &axis, std::int64_t count)
        : rows(count), groups((axis.n + 1 + L - 1) / L), axis_(axis), even_(axis.n / 2 + 1) {}

    // Rows first .. first + 2L - 1 of a grid to their spectra.
    void forward(const R *grid, std::int64_t first, Complex<R> *spectrum, Complex<R> *x, Complex<R> *y,
                 Complex<R> *z) const {
        const std::int64_t n = axis_.n;
        for (std::int64_t j = 0; j < n; j += L) {
            Lines<R> part[2][L];
            for (int half = 0; half < 2; ++half) {
                for (int t = 0; t < L; ++t) {
                    const std::int64_t row = first + half * L + t;
                    part[half][t] = Lines<R>{};
                    if (row < rows) std::memcpy(&part[half][t], grid + row * n + j, width(j) * sizeof(R));
                }
                transpose<R>(part[half]);
            }
            for (int t = 0; t < L && j + t < n; ++t) x[j + t] = {part[0][t], part[1][t]};
        }
        for (std::int64_t j = 0; j < n; ++j) y[j] = axis_.template shift<false>(x[j], j);
        unpack<0>(axis_.template transform<false>(x, z), first, spectrum);
        unpack<1>(axis_.template transform<false>(y, z), first, spectrum);
    }

    // The inverse of forward().
    void backward(const Complex<R> *spectrum, std::int64_t first, R *grid, Complex<R> *x, Complex<R> *y,
                  Complex<R> *z) const {
        const std::int64_t n = axis_.n;
        pack<1>(spectrum, first, y);
        const Complex<R> *odd = axis_.template transform<true>(y, z);
        pack<0>(spectrum, first, x);
        const Complex<R> *even = axis_.template transform<true>(x, odd == y ? z : y);
        for (std::int64_t j = 0; j < n; j += L) {
            Lines<R> part[2][L] = {};
            for (int t = 0; t < L && j + t < n; ++t) {
                const Complex<R> sum = even[j + t] + axis_.template shift<true>(odd[j + t], j + t);
                part[0][t] = sum.re;
                part[1][t] = sum.im;
            }
            for (int half = 0; half < 2; ++half) {
                transpose<R>(part[half]);
                for (int t = 0; t < L; ++t) {
                    const std::int64_t row = first + half * L + t;
                    if (row < rows) std::memcpy(grid + row * n + j, &part[half][t], width(j) * sizeof(R));
                }
            }
        }
    }

private:
    static constexpr int L = LINES<R>;
    const Axis<R> &axis_;
    std::int64_t even_;  // even frequencies of real rows

    std::size_t width(std::int64_t j) const { return std::size_t(axis_.n - j < L ? axis_.n - j : L); }
    template <int ODD> std::int64_t count() const { return ODD ? axis_.n + 1 - even_ : even_; }
    template <int ODD> std::int64_t mirror(std::int64_t k) const {
        return ODD ? axis_.n - 1 - k : k == 0 ? 0 : axis_.n - k;
    }

    // z = a + ib for real rows a, b: 2 A_k = Z_k + conj Z_-k, 2i B_k = Z_k - conj Z_-k. The factor ½ is in the kernel.
    template <int ODD> void unpack(const Complex<R> *Z, std::int64_t first, Complex<R> *spectrum) const {
        const std::int64_t begin = ODD ? even_ : 0, end = begin + count<ODD>();
        for (std::int64_t group = begin / L; group * L < end; ++group) {
            Lines<R> part[4][L] = {};  // re and im of rows a, re and im of rows b: one vector per frequency
            const std::int64_t from = group * L;
            const int low = int(from < begin ? begin - from : 0), high = int(end - from < L ? end - from : L);
            for (int t = low; t < high; ++t) {
                const std::int64_t k = from + t - begin;
                const Complex<R> p = Z[k], m = Z[mirror<ODD>(k)];
                part[0][t] = p.re + m.re;
                part[1][t] = p.im - m.im;
                part[2][t] = p.im + m.im;
                part[3][t] = m.re - p.re;
            }
            for (int c = 0; c < 4; ++c) transpose<R>(part[c]);
            for (int half = 0; half < 2; ++half)
                for (int t = 0; t < L; ++t) {
                    const std::int64_t row = first + half * L + t;
                    if (row >= rows) break;
                    Complex<R> &out = spectrum[group * rows + row];
                    if (low == 0) out = {part[2 * half][t], part[2 * half + 1][t]};
                    else
                        out = out + Complex<R>{part[2 * half][t],
                                               part[2 * half + 1][t]};  // the even ones are in its low lanes
                }
        }
    }

    template <int ODD> void pack(const Complex<R> *spectrum, std::int64_t first, Complex<R> *Z) const {
        const std::int64_t begin = ODD ? even_ : 0, end = begin + count<ODD>();
        for (std::int64_t group = begin / L; group * L < end; ++group) {
            Lines<R> part[4][L] = {};
            for (int half = 0; half < 2; ++half)
                for (int t = 0; t < L; ++t) {
                    const std::int64_t row = first + half * L + t;
                    if (row >= rows) break;
                    part[2 * half][t] = spectrum[group * rows + row].re;
                    part[2 * half + 1][t] = spectrum[group * rows + row].im;
                }
            for (int c = 0; c < 4; ++c) transpose<R>(part[c]);
            const std::int64_t from = group * L;
            const int low = int(from < begin ? begin - from : 0), high = int(end - from < L ? end - from : L);
            for (int t = low; t < high; ++t) {
                const std::int64_t k = from + t - begin;
                Z[mirror<ODD>(k)] = {part[0][t] + part[3][t], part[2][t] - part[1][t]};  // conj A + i conj B
                Z[k] = {part[0][t] - part[3][t], part[1][t] + part[2][t]};               // A + iB
            }
        }
    }
};

// Transforms x along the axes from the given one on, multiplies it by the kernel and transforms back, in place. K (2n,
// …) lists the frequencies of each axis, even ones first.
template <class R> class Product {
public:
    Product(Axis<R> *const *axes, int count) : axes_(axes), count_(count) {}

    // The size of `work`.
    std::int64_t work_size() const {
        std::int64_t total = 0;
        for (int a = 0; a < count_; ++a) total += 2 * block(a) + 2 * axes_[a]->n;
        return total;
    }

    const R *apply(Complex<R> *x, const R *K, Complex<R> *work, int a = 0) const {
        if (a == count_) {
            Lines<R> factor;
            std::memcpy(&factor, K, sizeof factor);
            *x = {x->re * factor, x->im * factor};
            return K + LINES<R>;
        }
        const Axis<R> &axis = *axes_[a];
        const std::int64_t n = axis.n, inner = block(a + 1);
        Complex<R> *part = work, *sum = part + n * inner, *line = sum + n * inner, *spare = line + n;
        for (int odd = 0; odd < 2; ++odd) {
            for (std::int64_t r = 0; r < inner; ++r) {
                for (std::int64_t j = 0; j < n; ++j)
                    line[j] = odd ? axis.template shift<false>(x[j * inner + r], j) : x[j * inner + r];
                const Complex<R> *X = axis.template transform<false>(line, spare);
                for (std::int64_t k = 0; k < n; ++k) part[k * inner + r] = X[k];
            }
            for (std::int64_t k = 0; k < n; ++k) K = apply(part + k * inner, K, spare + n, a + 1);
            for (std::int64_t r = 0; r < inner; ++r) {
                for (std::int64_t k = 0; k < n; ++k) line[k] = part[k * inner + r];
                const Complex<R> *y = axis.template transform<true>(line, spare);
                for (std::int64_t j = 0; j < n; ++j)
                    sum[j * inner + r] = odd ? sum[j * inner + r] + axis.template shift<true>(y[j], j) : y[j];
            }
        }
        std::memcpy(static_cast<void *>(x), sum, std::size_t(n * inner) * sizeof(Complex<R>));
        return K;
    }

private:
    Axis<R> *const *axes_;
    int count_;
    std::int64_t block(int a) const { return a >= count_ ? 1 : axes_[a]->n * block(a + 1); }
};

constexpr std::int64_t SMALL_CONVOLUTION = 1 << 12;  // nodes up to which a mesh is too small for two threads; chosen

// Convolves grids (nodes) of one size with kernels given at their frequencies (groups, 2 n_0, …, LINES). Each line is
// transformed by one thread, so results do not depend on their number.
template <class R> class Convolution {
public:
    Convolution(const Mesh &mesh, int threads)
        : axis_(mesh.size[mesh.d - 1]), first_(mesh.d > 1 ? mesh.size[0] : 1), second_(mesh.d > 2 ? mesh.size[1] : 1),
          product_(axes_, mesh.d - 1), rows_(axis_, mesh.nodes() / axis_.n),
          spectrum_(rows_.groups * rows_.rows, UNINITIALIZED),
          scratch_(mesh.nodes() > SMALL_CONVOLUTION ? threads : 1,
                   3 * axis_.n > product_.work_size() ? 3 * axis_.n : product_.work_size(), UNINITIALIZED) {
        for (int a = 0; a < mesh.d - 1; ++a) frequencies_ *= 2 * mesh.size[a];
    }
    Convolution(const Convolution &) = delete;
    Convolution &operator=(const Convolution &) = delete;

    // In place.
    void apply(const R *K, R *grid) {
        for_blocks([&](std::int64_t row, Complex<R> *x, Complex<R> *y, Complex<R> *z) {
            rows_.forward(grid, row, spectrum_.data, x, y, z);
        });
        parallel_for(rows_.groups, 1, scratch_.threads(), [&](std::int64_t first, std::int64_t last, int slot) {
            for (std::int64_t g = first; g < last; ++g)
                product_.apply(spectrum_.data + g * rows_.rows, K + g * frequencies_ * LINES<R>, scratch_[slot].data);
        });
        for_blocks([&](std::int64_t row, Complex<R> *x, Complex<R> *y, Complex<R> *z) {
            rows_.backward(spectrum_.data, row, grid, x, y, z);
        });
    }

private:
    Axis<R> axis_, first_, second_;
    Axis<R> *axes_[2] = {&first_, &second_};
    Product<R> product_;
    Rows<R> rows_;
    Buffer<Complex<R>> spectrum_;
    PerThread<Buffer<Complex<R>>> scratch_;
    std::int64_t frequencies_ = 1;

    // Calls use(first row of a block, and three lines of work space).
    template <class Use> void for_blocks(const Use &use) {
        constexpr std::int64_t BLOCK = 2 * LINES<R>;
        parallel_for((rows_.rows + BLOCK - 1) / BLOCK, 1, scratch_.threads(),
                     [&](std::int64_t first, std::int64_t last, int slot) {
                         Complex<R> *const x = scratch_[slot].data, *const y = x + axis_.n, *const z = y + axis_.n;
                         for (std::int64_t b = first; b < last; ++b) use(b * BLOCK, x, y, z);
                     });
    }
};

// Convolves the grid (m, nodes) in place.
template <class R> void convolve(const Mesh &mesh, const R *K, int m, R *grid, int threads) {
    Convolution<R> convolution(mesh, threads);
    for (int q = 0; q < m; ++q) convolution.apply(K, grid + q * mesh.nodes());
}

}  // namespace EQ_ISA
}  // namespace eq
