// The module: the instruction set, the constants, and the bindings of the other files.
#include <atomic>

#include "bind/common.hpp"
#include "threads/parallel.hpp"
#if defined(EQ_HAVE_AVX2) && defined(_WIN32)
#define NOMINMAX
#include <windows.h>
#endif

namespace {

#ifdef EQ_HAVE_AVX2
bool has_avx2() {
#ifdef _WIN32  // where clang-cl does not link the library behind __builtin_cpu_supports
    return IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE) != 0;
#else
    return __builtin_cpu_supports("avx2");
#endif
}

std::atomic<bool> use_avx2 = has_avx2();
#else
constexpr bool use_avx2 = false;
#endif

const char *instruction_set() { return use_avx2 ? "avx2" : "base"; }

void use_base_instruction_set(bool base) {
#ifdef EQ_HAVE_AVX2
    use_avx2 = !base && has_avx2();
#else
    (void)base;
#endif
}

}  // namespace

const eq::Backend &backend() {
#ifdef EQ_HAVE_AVX2
    if (use_avx2) return eq::avx2::backend;
#endif
    return eq::base::backend;
}

NB_MODULE(_core, m) {
    m.doc() =
        "The compiled core: edges and field by direct summation, on a mesh and from samples; perplexities; optimiser"
        " steps; stress; neighbours; geodesics.";
    // The objects of a fit that still runs in a daemon thread when the interpreter ends are never freed; they are not
    // leaks of the core. tests/core/test_core_lifetimes.py tests its reference counts.
    nb::set_leak_warnings(false);
    m.attr("MESH_ORDER") = eq::MESH_ORDER;
    m.attr("MESH_PADDING") = eq::MESH_PADDING;
    m.attr("TABLE_BITS") = eq::TABLE_BITS;
    m.attr("FIXED_POINT_BITS") = eq::FIXED_POINT_BITS;
    m.attr("VECTOR_BYTES") = eq::VECTOR_BYTES;
    m.attr("RANK_TILE") = eq::RANK_TILE;
    m.attr("PANEL") = eq::PANEL;
    m.attr("MIXED_TILE") = eq::MIXED_TILE;
    m.def("instruction_set", &instruction_set, "The instruction set in use: avx2 or base.");
    m.def("use_base_instruction_set", &use_base_instruction_set, "base"_a,
          "Turn AVX2 off, or on again if the processor has it. Results are the same.");
    m.def("loop_seconds", &eq::loop_seconds,
          "The seconds that callers in this process have spent in parallel loops; the rest of their time is serial.");
    bind_csr(m);
    bind_primitives(m);
    bind_curved(m);
    bind_mesh(m);
    bind_affinity(m);
    bind_neighbors(m);
    bind_cells(m);
    bind_mixed(m);
    bind_steps(m);
    bind_ranks(m);
    bind_stress(m);
    bind_geodesic(m);
}
