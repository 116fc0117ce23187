// Bindings of the optimisers' steps.
#include "bind/common.hpp"

namespace {

void momentum_step(const eq::Step &step, const double *gradient, std::int64_t n, int d, float *velocity, float *gain) {
    backend().momentum_step_f32(step, gradient, n, d, velocity, gain);
}
void momentum_step(const eq::Step &step, const double *gradient, std::int64_t n, int d, double *velocity, double *gain) {
    backend().momentum_step_f64(step, gradient, n, d, velocity, gain);
}

template <class R> void bind_step(nb::module_ &m) {
    m.def("momentum_step",
          [](In<double, nb::shape<-1, -1>> gradient, Out<R, nb::shape<-1, -1>> velocity, Out<R, nb::shape<-1, -1>> gain,
             double rate, double momentum, double gain_up, double gain_down, double turned, double min_gain, double max_step) {
              const std::size_t n = gradient.shape(0), d = gradient.shape(1);
              require(velocity.shape(0) == n && velocity.shape(1) == d && gain.shape(0) == n && gain.shape(1) == d,
                      "velocity and gain must have the shape of the gradient, (n, d)");
              nb::gil_scoped_release release;
              momentum_step({rate, momentum, gain_up, gain_down, turned, min_gain, max_step}, gradient.data(), std::int64_t(n),
                            int(d), velocity.data(), gain.data());
          },
          "gradient"_a.noconvert(), "velocity"_a.noconvert(), "gain"_a.noconvert(), "rate"_a, "momentum"_a, "gain_up"_a,
          "gain_down"_a, "turned"_a, "min_gain"_a, "max_step"_a,
          "v ← momentum · v − rate · gain · gradient in place, with gains updated and steps no longer than max_step.");
}

}  // namespace

void bind_steps(nb::module_ &m) {
    bind_step<float>(m);
    bind_step<double>(m);
    m.def("negatives_step",
          [](In<std::int64_t, nb::shape<-1>> indptr, In<std::int32_t, nb::shape<-1>> indices,
             In<float, nb::shape<-1>> period, In<float, nb::shape<-1>> degrees, Out<float, nb::shape<-1>> due,
             In<float, nb::shape<-1, -1>> Y,
             Out<float, nb::shape<-1, -1>> out, double a, double b, double epsilon, double clip, double rate,
             double exaggeration, double until, int count, std::uint64_t seed, std::int64_t step, int threads) {
              const std::size_t n = Y.shape(0), entries = indices.shape(0);
              require(period.shape(0) == entries && due.shape(0) == entries, "period and due must have an entry per edge");
              require_csr(indptr, entries, n);
              require(degrees.shape(0) == n, "degrees must be (n,)");
              require(out.shape(0) == n && out.shape(1) == Y.shape(1), "out must have the shape of Y, (n, d)");
              require(out.data() != Y.data(), "out must be another array than Y");
              nb::gil_scoped_release release;
              eq::Weights graph = weights(period.data());
              graph.indptr = indptr.data();
              graph.indices = indices.data();
              backend().negatives_step({a, b, epsilon, clip, rate, exaggeration, until, count, seed, step}, graph,
                                       degrees.data(), due.data(), Y.data(), std::int64_t(n), int(Y.shape(1)), out.data(), threads);
          },
          "indptr"_a.noconvert(), "indices"_a.noconvert(), "period"_a.noconvert(), "degrees"_a.noconvert(), "due"_a.noconvert(), "Y"_a.noconvert(),
          "out"_a.noconvert(), "a"_a, "b"_a, "epsilon"_a, "clip"_a, "rate"_a, "exaggeration"_a, "until"_a, "count"_a,
          "seed"_a, "step"_a, "threads"_a,
          "One step by the edges due before `until`, each with `count` negatives, under k = 1 / (1 + a d2^b).");
}
