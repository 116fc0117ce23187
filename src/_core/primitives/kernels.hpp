// The built-in kernels: k, log k and the logarithmic slope k'/k at a squared distance. The compiler removes members
// that are not used. kernels.py has the same kernels in NumPy.
#pragma once
#include "primitives/table.hpp"
#include "simd/vecmath.hpp"
#include "types.hpp"

namespace eq {
namespace EQ_ISA {

template <class R> struct Radial {
    R k, log_k, log_slope;
};

template <class R> struct Gaussian {
    EQ_INLINE Radial<R> operator()(R d2) const { return {exp(-d2), -d2, R(-1)}; }
};

// (a + b d2)^-c
template <class R> struct ShiftedPower {
    R a, b, c;
    EQ_INLINE Radial<R> operator()(R d2) const {
        const R base = a + b * d2, log_k = -c * log(base);
        return {exp(log_k), log_k, -c * b / base};
    }
};

// (a + d2)^-1, the Student kernel of t-SNE and the regularised power law at β = 2: no exp or log needed.
template <class R> struct Cauchy {
    R a;
    EQ_INLINE Radial<R> operator()(R d2) const {
        const R k = R(1) / (a + d2);
        return {k, -log(a + d2), -k};
    }
};

// max(d2, b)^-c
template <class R> struct ClampedPower {
    R b, c;
    EQ_INLINE Radial<R> operator()(R d2) const {
        const R x = clamp_below(d2, b), log_k = -c * log(x), outside = -c / x;
        return {exp(log_k), log_k, d2 > b ? outside : R(0)};
    }
};

// 1 / (a + b d2^c). Below d2 = 1e-30 the slope of a cusp (c < 1) is constant, so that the force between coincident
// points is 0 · finite = 0.
template <class R> struct RegularizedPower {
    R a, b, c;
    EQ_INLINE Radial<R> operator()(R d2) const {
        const R x = clamp_below(d2, R(1e-30)), power = b * exp(c * log(x)), t = d2 > R(0) ? power : R(0), base = a + t;
        return {R(1) / base, -log(base), -c * (power / x) / base};
    }
};

// log(1 + 1 / (b x^c)), x = a + d2, as log(1 + t) - log t.
template <class R> struct LogComplement {
    R a, b, c;
    EQ_INLINE Radial<R> operator()(R d2) const {
        const R x = clamp_below(a + d2, R(1e-30)), log_x = log(x), t = b * exp(c * log_x);
        // log(1 + s) without cancellation for small s: log(w) / (w - 1) · s, where w is 1 + s rounded.
        const R s = R(1) / t, w = R(1) + s, rounded = w - R(1);
        const R k = rounded > R(0) ? log(w) * (s / rounded) : s;
        return {k, log(clamp_below(k, R(1e-30))), -c / (x * (R(1) + t) * k)};
    }
};

template <class R> struct Tabulated {
    Table table;
    EQ_INLINE Radial<R> operator()(R d2) const {
        Radial<R> r = {};
        look_up(table, d2, &r.log_k, &r.log_slope);
        return r;
    }
};

// k and k' for a field.
template <class R, class K> EQ_INLINE void value_and_slope(const K &k, R d2, R *value, R *slope) {
    const Radial<R> r = k(d2);
    *value = r.k;
    *slope = r.k * r.log_slope;
}
template <class R> EQ_INLINE void value_and_slope(const Tabulated<R> &k, R d2, R *value, R *slope) {
    look_up(k.table, d2, value, slope);  // here the table contains k and k'
}

// Calls `use` with an object of the kernel's own type, so that the loops inside are compiled for it.
template <class R, class Use> EQ_INLINE void with_kernel(const Kernel &kernel, Use use) {
    const R a = R(kernel.a), b = R(kernel.b), c = R(kernel.c);
    switch (kernel.family) {
        case Kernel::Family::gaussian: return use(Gaussian<R>{});
        case Kernel::Family::shifted_power:
            return c == R(1) && b == R(1) ? use(Cauchy<R>{a}) : use(ShiftedPower<R>{a, b, c});
        case Kernel::Family::clamped_power: return use(ClampedPower<R>{b, c});
        case Kernel::Family::regularized_power: return use(RegularizedPower<R>{a, b, c});
        case Kernel::Family::log_complement: return use(LogComplement<R>{a, b, c});
        case Kernel::Family::tabulated: return use(Tabulated<R>{kernel.table});
    }
}

}  // namespace EQ_ISA
}  // namespace eq
