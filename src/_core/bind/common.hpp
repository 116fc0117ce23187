// Shared by the bindings: array types, checks, and the entry points for this processor. nanobind checks the types and
// the number of axes of arrays, and the bindings check everything else that a memory access or a loop depends on: sizes,
// alignment, indices, and memory that arrays share. So any call returns or raises. Python checks the meaning of values.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "bind/gil.hpp"
#include "ops.hpp"

namespace nb = nanobind;
using namespace nb::literals;

// An array in row-major order with aligned elements: those of a view of a byte buffer may be at any address.
template <class T, class... Config> struct Array : nb::ndarray<T, nb::c_contig, nb::device::cpu, Config...> {
    using Base = nb::ndarray<T, nb::c_contig, nb::device::cpu, Config...>;
    using Base::Base;
    Array() = default;
    explicit Array(const Base &base) : Base(base) {}
    bool aligned() const { return reinterpret_cast<std::uintptr_t>(this->data()) % alignof(T) == 0; }
};

namespace nanobind::detail {
template <class T, class... Config> struct type_caster<Array<T, Config...>> {
    using Aligned = Array<T, Config...>;
    using Caster = type_caster<typename Aligned::Base>;
    NB_TYPE_CASTER(Aligned, Caster::Name)

    template <class Flags> bool from_python(handle source, Flags flags, cleanup_list *cleanup) noexcept {
        Caster caster;
        if (!caster.from_python(source, flags, cleanup)) return false;
        value = Aligned(caster.value);
        return value.aligned();
    }
};
}  // namespace nanobind::detail

template <class T, class... Config> using In = Array<const T, Config...>;
template <class T, class... Config> using Out = Array<T, Config...>;
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

// Limits far above every use: products of sizes do not overflow, and indices of points fit into int32.
constexpr std::size_t MOST_POINTS = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t MOST_COLUMNS = std::numeric_limits<std::int32_t>::max();  // of data
constexpr std::size_t MOST_DIMENSIONS = 1 << 16;                                // of a map

inline void check_rows(std::size_t n, std::size_t d, std::size_t most) {
    require(n <= MOST_POINTS, "arrays of points must have fewer than 2^31 rows");
    require(d >= 1 && d <= most, "arrays of points must have at least one column, and maps at most 65536");
}

// The points of a map.
template <class R> eq::Points<R> points(const Matrix<R> &Y) {
    check_rows(Y.shape(0), Y.shape(1), MOST_DIMENSIONS);
    return {Y.data(), std::int64_t(Y.shape(0)), int(Y.shape(1))};
}

// The rows of a data table.
template <class R> eq::Points<R> data_rows(const Matrix<R> &X) {
    check_rows(X.shape(0), X.shape(1), MOST_COLUMNS);
    return {X.data(), std::int64_t(X.shape(0)), int(X.shape(1))};
}

inline eq::Charges as_charges(const Matrix<double> &charges) { return {charges.data(), int(charges.shape(1))}; }

// For finite d2 >= 0, float(d2 · scale) >> TABLE_BITS is between 0 and `end`; a table must lie there too.
inline eq::Table make_table(const Segments &segments, int first, float scale) {
    constexpr std::size_t end = 0x7F800000 >> eq::TABLE_BITS;
    require(segments.shape(0) > 0, "segments must have at least one row");
    require(first >= 0 && segments.shape(0) <= end && std::size_t(first) <= end - segments.shape(0),
            "first must not be negative, nor the end of the table beyond the largest float");
    return {segments.data(), first, std::int32_t(segments.shape(0)), scale};
}

// The bytes of an array.
struct Bytes {
    std::uintptr_t begin, end;
    Bytes(const void *data, std::size_t size)
        : begin(reinterpret_cast<std::uintptr_t>(data)), end(begin + size) {}
    template <class T, class... Config>
    explicit Bytes(const Array<T, Config...> &array) : Bytes(array.data(), array.nbytes()) {}
    bool overlaps(const Bytes &other) const { return begin < other.end && other.begin < end; }
};

// Outputs must not overwrite the indices that are read after them.
template <class Index, class... Outputs> void keep_apart(const Index &index, const Outputs &...outputs) {
    require(!(Bytes(outputs).overlaps(Bytes(index)) || ...), "outputs must not share memory with indices");
}
template <class... Outputs> void keep_apart(const eq::Csr &A, const Outputs &...outputs) {
    keep_apart(Bytes(A.indptr, std::size_t(A.rows + 1) * sizeof *A.indptr), outputs...);
    keep_apart(Bytes(A.indices, std::size_t(A.entries()) * sizeof *A.indices), outputs...);
}

// The outputs of a field at `targets` points, checked.
inline eq::FieldSums field_sums(std::size_t targets, std::size_t m, std::size_t d, const OutMatrix<double> &potential,
                                const OutCube &half_gradient) {
    require(potential.shape(0) == targets && potential.shape(1) == m, "potential must have shape (n_targets, m)");
    require(half_gradient.shape(0) == targets && half_gradient.shape(1) == m && half_gradient.shape(2) == d,
            "half_gradient must have shape (n_targets, m, d)");
    require(m <= MOST_DIMENSIONS && d <= MOST_DIMENSIONS && m * (d + 1) <= (1 << 24), "m (d + 1) must be at most 2^24");
    return {potential.data(), half_gradient.data()};
}

// The outputs of edges, checked; an empty potential is not computed.
inline eq::EdgeSums edge_sums(std::size_t n, std::size_t d, const OutVector<double> &potential,
                              const OutMatrix<double> &force) {
    require(potential.shape(0) == 0 || potential.shape(0) == n, "potential must be empty or have shape (n,)");
    require(force.shape(0) == n && force.shape(1) == d, "force must have shape (n, d)");
    return {potential.shape(0) == 0 ? nullptr : potential.data(), force.data()};
}

// One value per entry of a CSR matrix.
template <class T> const T *entry_values(const eq::Csr &A, const Vector<T> &values, const char *message) {
    require(std::int64_t(values.shape(0)) == A.entries(), message);
    return values.data();
}

void bind_csr(nb::module_ &m);
void bind_primitives(nb::module_ &m);
void bind_curved(nb::module_ &m);
void bind_mesh(nb::module_ &m);
void bind_affinity(nb::module_ &m);
void bind_neighbors(nb::module_ &m);
void bind_cells(nb::module_ &m);
void bind_mixed(nb::module_ &m);
void bind_steps(nb::module_ &m);
void bind_ranks(nb::module_ &m);
void bind_stress(nb::module_ &m);
void bind_geodesic(nb::module_ &m);
