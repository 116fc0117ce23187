// Shared by the bindings: array types, checks, and the entry points for this processor. nanobind checks the types and
// the number of axes of arrays, the bindings check sizes and indices, and Python checks the rest.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "ops.hpp"

namespace nb = nanobind;
using namespace nb::literals;

template <class T, class... Config> using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu, Config...>;
template <class T, class... Config> using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu, Config...>;
template <class T> using Vector = In<T, nb::shape<-1>>;
template <class T> using Matrix = In<T, nb::shape<-1, -1>>;
template <class T> using OutVector = Out<T, nb::shape<-1>>;
template <class T> using OutMatrix = Out<T, nb::shape<-1, -1>>;
using OutCube = Out<double, nb::shape<-1, -1, -1>>;
using Segments = In<float, nb::shape<-1, 4>>;

const eq::Backend &backend();  // for the instruction set in use
template <class R> const eq::Ops<R> &ops() { return backend().ops<R>(); }

// An array argument that is never converted or copied.
inline auto array(const char *name) { return nb::arg(name).noconvert(); }

inline void require(bool holds, const char *message) {
    if (!holds) throw nb::value_error(message);
}

template <class R> eq::Points<R> points(const Matrix<R> &Y) {
    return {Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1))};
}

inline eq::Charges as_charges(const Matrix<double> &charges) { return {charges.data(), int(charges.shape(1))}; }

inline eq::Table make_table(const Segments &segments, int first, float scale) {
    require(segments.shape(0) > 0, "segments must have at least one row");
    return {segments.data(), first, std::int32_t(segments.shape(0)), scale};
}

// The outputs of a field at `targets` points, checked.
inline eq::FieldSums field_sums(std::size_t targets, std::size_t m, std::size_t d, const OutMatrix<double> &potential,
                                const OutCube &half_gradient) {
    require(potential.shape(0) == targets && potential.shape(1) == m, "potential must have shape (n_targets, m)");
    require(half_gradient.shape(0) == targets && half_gradient.shape(1) == m && half_gradient.shape(2) == d,
            "half_gradient must have shape (n_targets, m, d)");
    return {potential.data(), half_gradient.data()};
}

// One value per entry of a CSR matrix.
template <class T> const T *entry_values(const eq::Csr &A, const Vector<T> &values, const char *message) {
    require(std::int64_t(values.shape(0)) == A.entries(), message);
    return values.data();
}

void bind_csr(nb::module_ &m);
void bind_primitives(nb::module_ &m);
void bind_mesh(nb::module_ &m);
void bind_affinity(nb::module_ &m);
void bind_neighbors(nb::module_ &m);
void bind_steps(nb::module_ &m);
void bind_stress(nb::module_ &m);
void bind_geodesic(nb::module_ &m);
