// What the binding files share: array types, checks, and the numerical code for this processor.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "ops.hpp"

namespace nb = nanobind;
using namespace nb::literals;

template <class T, class... Config> using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu, Config...>;
template <class T, class... Config> using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu, Config...>;

const eq::Backend &backend();  // the instruction set in use

inline void require(bool holds, const char *what) {
    if (!holds) throw nb::value_error(what);
}

// Row pointers of a CSR pattern rise from 0 to the number of entries. The callers check that indices are below n.
inline void require_csr(const In<std::int64_t, nb::shape<-1>> &indptr, std::size_t entries, std::size_t rows) {
    require(indptr.shape(0) == rows + 1, "indptr must have one entry more than there are rows");
    const std::int64_t *p = indptr.data();
    require(p[0] == 0 && p[rows] == std::int64_t(entries), "indptr must run from 0 to the number of stored entries");
    for (std::size_t i = 0; i < rows; ++i) require(p[i] <= p[i + 1], "indptr must not fall");
}

inline eq::Weights weights(const float *values) {
    eq::Weights A;
    A.f32 = values;
    return A;
}
inline eq::Weights weights(const double *values) {
    eq::Weights A;
    A.f64 = values;
    return A;
}

using Segments = In<float, nb::shape<-1, 4>>;

inline eq::Table make_table(const Segments &segments, int first, float scale) {
    return {segments.data(), first, std::int32_t(segments.shape(0)), scale};
}

inline void require_field_outputs(std::size_t targets, std::size_t m, std::size_t d,
                                  const Out<double, nb::shape<-1, -1>> &potential,
                                  const Out<double, nb::shape<-1, -1, -1>> &half_gradient) {
    require(potential.shape(0) == targets && potential.shape(1) == m, "potential must be (targets, m)");
    require(half_gradient.shape(0) == targets && half_gradient.shape(1) == m && half_gradient.shape(2) == d,
            "half_gradient must be (targets, m, d)");
}
