// Bindings of sparse matrices in another order, and symmetrised.
#include "bind/common.hpp"
#include "affinity/permute.hpp"
#include "affinity/symmetrize.hpp"

namespace {

template <class R> void bind_permute(nb::module_ &m) {
    m.def("permute",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
             In<R, nb::shape<-1>> values, In<std::int64_t, nb::shape<-1>> order, In<std::int32_t, nb::shape<-1>> place,
             Out<std::int64_t, nb::shape<-1>> out_indptr, Out<std::int32_t, nb::shape<-1>> out_indices,
             Out<R, nb::shape<-1>> out_values) {
              const std::size_t n = order.shape(0), entries = values.shape(0);
              require_csr(indptr, entries, n);
              require(indices.shape(0) == entries && place.shape(0) == n, "indices and place must fit values and order");
              require(out_indptr.shape(0) == n + 1 && out_indices.shape(0) == entries && out_values.shape(0) == entries,
                      "the outputs must have the sizes of the inputs");
              for (std::size_t i = 0; i < n; ++i)
                  require(order(i) >= 0 && order(i) < std::int64_t(n) && place(std::size_t(order(i))) == std::int32_t(i),
                          "place must be the inverse of order");
              nb::gil_scoped_release release;
              eq::permute(indptr.data(), indices.data(), values.data(), std::int64_t(n), order.data(), place.data(),
                          out_indptr.data(), out_indices.data(), out_values.data());
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "order"_a.noconvert(),
          "place"_a.noconvert(), "out_indptr"_a.noconvert(), "out_indices"_a.noconvert(), "out_values"_a.noconvert(),
          "A[order][:, order] for CSR A, where place[order[i]] = i.");
}

template <class R> void bind_symmetrize(nb::module_ &m) {
    m.def("symmetrize",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices, In<R, nb::shape<-1>> values,
             Out<std::int64_t, nb::shape<-1>> out_indptr, Out<std::int32_t, nb::shape<-1>> out_indices,
             Out<R, nb::shape<-1>> out_values, int threads) {
              const std::size_t n = out_indptr.shape(0) - 1, entries = values.shape(0);
              require(out_indptr.shape(0) > 0 && indices.shape(0) == entries, "indices and values must be of one length");
              require_csr(indptr, entries, n);
              require(out_indices.shape(0) == 2 * entries && out_values.shape(0) == 2 * entries,
                      "the outputs must have room for twice the entries");
              for (std::size_t t = 0; t < entries; ++t)
                  require(indices.data()[t] >= 0 && std::size_t(indices.data()[t]) < n, "a column is out of range");
              nb::gil_scoped_release release;
              return eq::symmetrize(indptr.data(), indices.data(), values.data(), std::int64_t(n),
                                    out_indptr.data(), out_indices.data(), out_values.data(), threads);
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
          "out_indptr"_a.noconvert(), "out_indices"_a.noconvert(), "out_values"_a.noconvert(), "threads"_a,
          "A + Aᵀ of a CSR matrix, with sorted columns; returns how many entries of the outputs it fills.");
}

}  // namespace

void bind_sparse(nb::module_ &m) {
    bind_permute<float>(m);
    bind_permute<double>(m);
    bind_symmetrize<float>(m);
    bind_symmetrize<double>(m);
}
