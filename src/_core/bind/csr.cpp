// Bindings of CSR matrices: their patterns, checked once, and the matrices permuted and symmetrised.
#include <atomic>
#include <string>

#include "affinity/permute.hpp"
#include "affinity/symmetrize.hpp"
#include "bind/common.hpp"

namespace {

[[noreturn]] void fail(const std::string &message) { throw nb::value_error(message.c_str()); }

// Checks sizes, row pointers and column indices. Entry points that accept the result do not check them again.
eq::Csr check_csr(const Vector<std::int64_t> &indptr, const Vector<std::int32_t> &indices, std::int64_t n_columns,
                  int threads) {
    const std::int64_t entries = std::int64_t(indices.shape(0)), *const p = indptr.data();
    if (indptr.shape(0) == 0) fail("indptr is empty; it must have one element more than the matrix has rows");
    if (indptr.shape(0) > MOST_POINTS) fail("a matrix must have fewer than 2^31 rows");
    if (n_columns < 0) fail("n_columns must not be negative, got " + std::to_string(n_columns));
    const eq::Csr csr{std::int64_t(indptr.shape(0)) - 1, n_columns, p, indices.data()};
    if (p[0] != 0) fail("indptr must start at 0, got " + std::to_string(p[0]));
    for (std::int64_t i = 0; i < csr.rows; ++i)
        if (p[i] > p[i + 1])
            fail("indptr must not decrease, but row " + std::to_string(i) + " goes from " + std::to_string(p[i]) +
                 " to " + std::to_string(p[i + 1]));
    if (p[csr.rows] != entries)
        fail("indptr ends at " + std::to_string(p[csr.rows]) + ", but there are " + std::to_string(entries) +
             " column indices");
    std::atomic<bool> all_valid{true};
    eq::parallel_for(entries, 1 << 16, threads, [&](std::int64_t first, std::int64_t last, int) {
        bool valid = true;
        for (std::int64_t t = first; t < last; ++t) valid &= csr.indices[t] >= 0 && csr.indices[t] < n_columns;
        if (!valid) all_valid = false;
    });
    if (all_valid) return csr;
    for (std::int64_t i = 0; i < csr.rows; ++i)
        for (std::int64_t t = p[i]; t < p[i + 1]; ++t)
            if (csr.indices[t] < 0 || csr.indices[t] >= n_columns)
                fail("row " + std::to_string(i) + " has column index " + std::to_string(csr.indices[t]) +
                     ", but the matrix has " + std::to_string(n_columns) + " columns, counted from 0");
    return csr;
}

template <class R> eq::CsrOut<R> output(std::int64_t rows, std::int64_t entries, const OutVector<std::int64_t> &indptr,
                                        const OutVector<std::int32_t> &indices, const OutVector<R> &values) {
    require(std::int64_t(indptr.shape(0)) == rows + 1,
            "out_indptr must have one element more than the matrix has rows");
    require(std::int64_t(indices.shape(0)) == entries && std::int64_t(values.shape(0)) == entries,
            "out_indices and out_values have the wrong length");
    return {indptr.data(), indices.data(), values.data()};
}

template <class R> void bind_permute(nb::module_ &m) {
    m.def(
        "permute",
        [](const eq::Csr &A, Vector<R> values, Vector<std::int64_t> order, Vector<std::int32_t> position,
           OutVector<std::int64_t> out_indptr, OutVector<std::int32_t> out_indices, OutVector<R> out_values,
           int threads) {
            const R *a = entry_values(A, values, "values must have one element per entry of A");
            const auto B = output(A.rows, A.entries(), out_indptr, out_indices, out_values);
            const std::size_t n = std::size_t(A.rows);
            require(A.columns == A.rows, "A must be square");
            require(order.shape(0) == n && position.shape(0) == n,
                    "order and position must have one element per row of A");
            for (std::size_t i = 0; i < n; ++i)
                require(order(i) >= 0 && order(i) < A.rows && position(std::size_t(order(i))) == std::int32_t(i),
                        "position must be the inverse of order");
            keep_apart(A, out_indptr, out_indices, out_values);
            keep_apart(order, out_indptr, out_indices, out_values);
            keep_apart(position, out_indptr, out_indices, out_values);
            keep_apart(out_indptr, out_indices, out_values);
            eq::ReleaseGil release;
            eq::permute(A, a, order.data(), position.data(), B, threads);
        },
        "A"_a, array("values"), array("order"), array("position"), array("out_indptr"), array("out_indices"),
        array("out_values"), "threads"_a, "A[order][:, order], where position[order[i]] = i.");
}

template <class R> void bind_times(nb::module_ &m) {
    m.def(
        "times",
        [](const eq::Csr &A, Vector<R> values, Vector<R> x, OutVector<R> out, int threads) {
            const R *a = entry_values(A, values, "values must have one element per entry of A");
            require(std::int64_t(x.shape(0)) == A.columns, "x must have one element per column of A");
            require(std::int64_t(out.shape(0)) == A.rows, "out must have one element per row of A");
            keep_apart(A, out);
            keep_apart(x, out);
            keep_apart(values, out);
            eq::ReleaseGil release;
            eq::times(A, a, x.data(), out.data(), threads);
        },
        "A"_a, array("values"), array("x"), array("out"), "threads"_a, "Write A x to `out`.");
}

template <class R> void bind_symmetrize(nb::module_ &m) {
    m.def(
        "symmetrize",
        [](const eq::Csr &A, Vector<R> values, OutVector<std::int64_t> out_indptr, OutVector<std::int32_t> out_indices,
           OutVector<R> out_values, int threads) {
            const R *a = entry_values(A, values, "values must have one element per entry of A");
            require(A.columns == A.rows, "A must be square");
            const auto S = output(A.rows, 2 * A.entries(), out_indptr, out_indices, out_values);
            keep_apart(A, out_indptr, out_indices, out_values);
            keep_apart(out_indptr, out_indices, out_values);
            keep_apart(out_indices, out_values);
            eq::ReleaseGil release;
            return eq::symmetrize(A, a, S, threads);
        },
        "A"_a, array("values"), array("out_indptr"), array("out_indices"), array("out_values"), "threads"_a,
        "A + Aᵀ with sorted columns. The outputs must have space for twice the entries of A; returns the number used.");
}

}  // namespace

void bind_csr(nb::module_ &m) {
    nb::class_<eq::Csr>(m, "Csr",
                        "The pattern of a CSR matrix: row pointers and column indices, checked once. Values are passed"
                        " separately, so that several matrices can share a pattern. The arrays are not copied and must"
                        " not be changed.")
        .def(
            "__init__",
            [](eq::Csr *csr, Vector<std::int64_t> indptr, Vector<std::int32_t> indices, std::int64_t n_columns,
               int threads) { new (csr) eq::Csr(check_csr(indptr, indices, n_columns, threads)); },
            array("indptr"), array("indices"), "n_columns"_a, "threads"_a = 1, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def_prop_ro(
            "shape", [](const eq::Csr &A) { return nb::make_tuple(A.rows, A.columns); },
            nb::sig("def shape(self) -> tuple[int, int]"), "Numbers of rows and columns.")
        .def_prop_ro("nnz", &eq::Csr::entries, "Number of stored entries.");
    bind_permute<float>(m);
    bind_permute<double>(m);
    bind_times<float>(m);
    bind_times<double>(m);
    bind_symmetrize<float>(m);
    bind_symmetrize<double>(m);
}
