// exp, log and angles without branches or tables, so that the compiler vectorises plain loops over them.
// Every instruction set runs the same operations, without fused multiply-add, so all x86-64 machines give the same
// bytes.
#pragma once
#include <cstdint>
#include <cstring>

#include "types.hpp"

namespace eq {
namespace EQ_ISA {

template <class To, class From> EQ_INLINE To bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "bits() needs two types of the same size");
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}

template <class R> EQ_INLINE R clamp_below(R x, R low) { return x > low ? x : low; }

// e^x = 2^q e^f with q = round(x / ln 2), |f| <= ln(2)/2. Adding 1.5·2^mantissa rounds x / ln 2 to an integer and
// leaves it in the low bits. Arguments are clamped where 2^q is a normal number; below that the result is 0.
EQ_INLINE float exp(float argument) {
    float x = clamp_below(argument, -87.0f);
    x = x < 88.0f ? x : 88.0f;
    const float shifted = x * 1.44269504f + 12582912.0f;
    const float q = shifted - 12582912.0f;
    const float f = (x - q * 0.693145752f) - q * 1.42860677e-6f;
    float p = 1.0f / 5040;  // Taylor: the remainder at |f| = 0.347 is 5e-9
    p = p * f + 1.0f / 720;
    p = p * f + 1.0f / 120;
    p = p * f + 1.0f / 24;
    p = p * f + 1.0f / 6;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    const auto scale = (bits<std::uint32_t>(shifted) << 23) + 0x3F800000u;
    const float result = p * bits<float>(scale);
    return argument < -87.0f ? 0.0f : result;
}

EQ_INLINE double exp(double argument) {
    double x = clamp_below(argument, -708.0);
    x = x < 709.0 ? x : 709.0;
    const double shifted = x * 1.4426950408889634 + 6755399441055744.0;
    const double q = shifted - 6755399441055744.0;
    const double f = (x - q * 0.6931471803691238) - q * 1.9082149292705877e-10;
    double p = 1.0 / 6227020800;  // Taylor to the 13th power: the remainder at |f| = 0.347 is 4e-18
    p = p * f + 1.0 / 479001600;
    p = p * f + 1.0 / 39916800;
    p = p * f + 1.0 / 3628800;
    p = p * f + 1.0 / 362880;
    p = p * f + 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 0.5;
    p = p * f + 1.0;
    p = p * f + 1.0;
    const auto scale = (bits<std::uint64_t>(shifted) << 52) + 0x3FF0000000000000u;
    const double result = p * bits<double>(scale);
    return argument < -708.0 ? 0.0 : result;
}

// log x = e ln 2 + log m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.172.
// For positive normal x; callers keep x above zero.
EQ_INLINE float log(float x) {
    const auto shifted = bits<std::uint32_t>(x) - 0x3F3504F3u;  // bits of sqrt(1/2)
    const auto e = static_cast<std::int32_t>(shifted) >> 23;
    const float m = bits<float>((shifted & 0x007FFFFFu) + 0x3F3504F3u);
    const float s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    float p = 2.0f / 9;
    p = p * s2 + 2.0f / 7;
    p = p * s2 + 2.0f / 5;
    p = p * s2 + 2.0f / 3;
    p = p * s2 * s + 2.0f * s;
    const auto q = static_cast<float>(e);
    return q * 0.693359375f + (p - q * 2.12194440e-4f);
}

EQ_INLINE double log(double x) {
    const auto shifted = bits<std::uint64_t>(x) - 0x3FE6A09E667F3BCDu;
    // The exponent as a double without a 64-bit integer conversion, which AVX2 lacks: 2^52 + 1023 + e, then subtract.
    const auto biased = (shifted >> 52) + 1023u;
    const double q = bits<double>((biased & 0xFFFu) | 0x4330000000000000u) - 4503599627370496.0;
    const double e = q >= 2048.0 ? q - 5119.0 : q - 1023.0;
    const double m = bits<double>((shifted & 0x000FFFFFFFFFFFFFu) + 0x3FE6A09E667F3BCDu);
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double p = 2.0 / 23;
    p = p * s2 + 2.0 / 21;
    p = p * s2 + 2.0 / 19;
    p = p * s2 + 2.0 / 17;
    p = p * s2 + 2.0 / 15;
    p = p * s2 + 2.0 / 13;
    p = p * s2 + 2.0 / 11;
    p = p * s2 + 2.0 / 9;
    p = p * s2 + 2.0 / 7;
    p = p * s2 + 2.0 / 5;
    p = p * s2 + 2.0 / 3;
    p = p * s2 * s + 2.0 * s;
    return e * 0.6931471803691238 + (p + e * 1.9082149292705877e-10);
}

// (e^x - 1), accurate also for small x: the Taylor series up to |x| = 0.35, the difference beyond.
template <class R> EQ_INLINE R expm1(R x) {
    const int terms = sizeof(R) == 4 ? 8 : 14;
    R series = R(1);
    for (int i = terms; i >= 2; --i) series = series * (x * (R(1) / R(i))) + R(1);
    const R small = x * series, large = exp(x) - R(1);
    return (x < R(0.35) && x > R(-0.35)) ? small : large;
}

// The angle of (x, y) in turns, in [0, 1]; 0 at the origin. The tangent z of an angle of at most 1/16 turn is the ratio
// of the coordinates, or (s - 1)/(s + 1) for their ratio s, which is the tangent of the angle less 1/8. atan(z)/(2π z) is
// a polynomial in z² fitted by Chebyshev's points; its relative error is 1e-18.
EQ_INLINE double turns(double x, double y) {
    const double a = x < 0 ? -x : x, b = y < 0 ? -y : y, low = a < b ? a : b, high = a < b ? b : a;
    const bool reduce = low > 0.41421356237309503 * high;
    const double top = reduce ? low - high : low, bottom = reduce ? low + high : high;
    const double z = bottom > 0 ? top / bottom : 0, z2 = z * z;
    double p = -0.00283381697895473532;
    p = p * z2 + 0.00604235838953703287;
    p = p * z2 - 0.0080136144494219858;
    p = p * z2 + 0.0093055958267691454;
    p = p * z2 - 0.0106044171672219207;
    p = p * z2 + 0.0122422703690002262;
    p = p * z2 - 0.0144686116430087812;
    p = p * z2 + 0.01768388198295435;
    p = p * z2 - 0.0227364204314114933;
    p = p * z2 + 0.031830988618284993;
    p = p * z2 - 0.0530516476972981076;
    p = (p * z2 + 0.159154943091895336) * z;
    p = reduce ? 0.125 + p : p;
    p = a < b ? 0.25 - p : p;
    p = x < 0 ? 0.5 - p : p;
    return y < 0 ? 1 - p : p;
}

}  // namespace EQ_ISA
}  // namespace eq
