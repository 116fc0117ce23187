// Plain data types and constants shared by the numerical code and the bindings. Pointers do not own memory.
#pragma once
#include <cstdint>

// Member functions here are always inlined: an ordinary inline function compiled for AVX2 could be linked into the code
// for other processors.
#define EQ_INLINE inline __attribute__((always_inline))

namespace eq {

// Python reads these constants from the module, so that each is written once.
constexpr int MESH_ORDER = 6;         // B-splines of degree 5
constexpr int MESH_PADDING = 8;       // elements after a mesh that a spline may read, with weight 0
constexpr int TABLE_BITS = 17;        // mantissa bits inside a segment of a table: 64 segments per octave
constexpr int FIXED_POINT_BITS = 40;  // fractional bits of a charge on an integer mesh (the GPU engine), at most
constexpr int VECTOR_BYTES = 32;      // of a SIMD vector, the same in every instruction set
constexpr int RANK_TILE = 64;         // approximate distances per tile of the ranks: 8 groups of 8
constexpr std::int64_t STEP_BLOCK = 1024;  // points per block: sums over a map add the sums of these blocks in order
constexpr int PANEL = 8;              // points per panel of the neighbour search

// Points (n, d), row by row.
template <class R> struct Points {
    const R *data = nullptr;
    std::int64_t n = 0;
    int d = 0;
    EQ_INLINE const R *row(std::int64_t i) const { return data + i * d; }
};

// Points sorted by group, PANEL points side by side: coordinate c of panel p is data[(p * d + c) * PANEL], … The last
// panel is filled up with points at 0 whose norm is infinite.
struct Panels {
    const float *data = nullptr;        // (panels, d, PANEL)
    const float *norms = nullptr;       // squared norms (panels, PANEL)
    const std::int32_t *ids = nullptr;  // the index of each point (panels, PANEL)
    std::int64_t panels = 0;
    int d = 0;
};

// Groups of queries, and the groups of points with which each is compared.
struct GroupSearch {
    Points<float> queries;
    const std::int32_t *self = nullptr;    // the id of each query, which is not its own neighbour; null if it has none
    const std::int64_t *starts = nullptr;  // where each group of queries starts in `order` (groups + 1)
    const std::int32_t *order = nullptr;   // queries, sorted by group
    const std::int64_t *near = nullptr;    // where the list of each group starts in `nearby` (groups + 1)
    const std::int32_t *nearby = nullptr;  // groups of points, ascending in each list
    const std::int64_t *ends = nullptr;    // where each group of points starts among the points (groups of points + 1)
    std::int64_t groups = 0;
    std::int64_t first = 0, last = 0;  // the part of `order` to search for
    std::int64_t k = 0;
    bool sorted = false;  // whether neighbours are sorted by distance
};

// How two values of a column differ: |a - b|, (a - b)^2, or 1 for different categories.
enum MixedKind : std::uint8_t { ABSOLUTE = 0, SQUARED = 1, CATEGORY = 2 };

// Columns of mixed kinds. The distance of two rows is the weighted mean of their differences in the columns where both
// have a value, and `none` if there is no such column. NaN is a missing value.
struct MixedColumns {
    std::int64_t size;  // number of columns
    const double *weights;
    const std::uint8_t *kinds;
    double none;
};

// Pairs of rows (., columns) in float64.
struct MixedPairs {
    const double *queries, *base;
    const std::int32_t *found;  // rows of base (m, k) for each query; null for all rows
    std::int64_t m, k;
};

// Rows of `base` in tiles of MIXED_TILE, each tile column by column, and queries (m, columns). The columns are sorted:
// first those without missing values, each part by kind; `sizes` counts them. Values of kind ABSOLUTE are multiplied by
// the weight of their column, and those of kind SQUARED by its root.
constexpr int MIXED_TILE = 16;

struct MixedSearch {
    const float *base, *queries, *weights;
    const std::int64_t *sizes;  // (6)
    float none;
    std::int64_t n, m, k;
    std::int64_t self;  // the row of the first query, if the queries are consecutive rows of base; otherwise -1
};

// m charges per point, (n, m).
struct Charges {
    const double *data = nullptr;
    int m = 0;
};

// Output of a field: Φ (n, m) and ½∇Φ (n, m, d).
struct FieldSums {
    double *potential = nullptr;
    double *half_gradient = nullptr;
};

// Output of edges: Ψ (n) and E (n, d). Ψ is not computed if its pointer is null.
struct EdgeSums {
    double *potential = nullptr;
    double *force = nullptr;
};

// A radial function and its slope d/d(d2) in segments, 64 per octave: segment i contains the d2 whose bits, as
// float(d2 · scale) >> TABLE_BITS, are first + i. With f from 0 to 1 inside a segment of width Δ, it stores v0, s0, s1,
// s2: the slope is s0 + s1 f + s2 f², and the function is its integral, v0 + Δ (s0 f + s1 f²/2 + s2 f³/3). Arguments
// outside the table are clamped to the start of its first and of its last segment.
struct Table {
    const float *segments = nullptr;  // (size, 4)
    std::int32_t first = 0, size = 0;
    float scale = 1;
};

// A regular grid with d axes: size[c] nodes starting at origin[c], 1 / inverse_h apart.
struct Mesh {
    int d = 0;
    double origin[3] = {0, 0, 0}, inverse_h = 1;
    std::int64_t size[3] = {1, 1, 1};
    EQ_INLINE std::int64_t nodes() const { return size[0] * size[1] * size[2]; }
};

// A radial kernel k(d2), by family; docs/math.md section 2.
struct Kernel {
    enum class Family {
        gaussian,           // exp(-d2)
        shifted_power,      // (a + b d2)^-c: Student-t, spherical exit; c = 1 is t-SNE's kernel
        clamped_power,      // max(d2, b)^-c: power law, constant within the cut-off radius r0, b = r0²
        regularized_power,  // 1 / (a + b d2^c): eq. (13) of Lin et al. 2024, c = β/2
        log_complement,     // log(1 + 1 / (b x^c)), x = a + d2: -log(1 - k) of k = 1 / (1 + b x^c)
        tabulated,          // for edges with b = -1: the table contains ψ_b and k^b k' for the true b;
                            // for sampled fields: k and k'
    };
    Family family = Family::gaussian;
    double a = 0, b = 0, c = 0;
    Table table;
};

// A curved space of maps, in which pairs have a squared distance d2 and a direction v = ½ ∂d2/∂y_i; docs/math.md,
// section 21. Flat space needs none.
struct Space {
    enum class Kind {
        torus,       // differences are wrapped to the nearest image; period[c] along axis c
        hyperbolic,  // the plane of curvature -1/radius², in normal coordinates at the origin
    };
    Kind kind = Kind::torus;
    int dimension = 2;
    const double *period = nullptr;
    double radius = 1;
};

// A polar mesh in the hyperbolic plane: rings at the distance h around the origin, each with the same angles. Nearer to
// the origin than `centre`, the gradient is that at this distance.
struct PolarMesh {
    double h, angles, centre;
};

// The pattern of a CSR matrix. bind/csr.cpp checks it once, when it is created from arrays.
struct Csr {
    std::int64_t rows = 0, columns = 0;
    const std::int64_t *indptr = nullptr;
    const std::int32_t *indices = nullptr;

    EQ_INLINE std::int64_t entries() const { return indptr[rows]; }
    EQ_INLINE std::int64_t length(std::int64_t i) const { return indptr[i + 1] - indptr[i]; }
    EQ_INLINE std::int64_t longest_row() const {
        std::int64_t longest = 0;
        for (std::int64_t i = 0; i < rows; ++i) longest = length(i) > longest ? length(i) : longest;
        return longest;
    }
};

// The weights A: CSR, or dense (n, n) if indptr is null. Values are float or double; a graph may have none.
struct Weights : Csr {
    const float *f32 = nullptr;
    const double *f64 = nullptr;

    Weights() = default;
    EQ_INLINE explicit Weights(const float *values) : f32(values) {}
    EQ_INLINE explicit Weights(const double *values) : f64(values) {}
    EQ_INLINE explicit Weights(const Csr &pattern) : Csr(pattern) {}
    EQ_INLINE Weights(const Csr &pattern, const float *values) : Csr(pattern), f32(values) {}
    EQ_INLINE Weights(const Csr &pattern, const double *values) : Csr(pattern), f64(values) {}
};

// Squared distances of the input: from points X (n, dimension), a dense matrix (n, n), or a CSR graph.
struct Distances {
    std::int64_t n = 0;
    const double *points = nullptr;
    std::int64_t dimension = 0;
    const double *dense = nullptr;
    Csr graph;
    const double *values = nullptr;  // of the graph
};

// The perplexities that rows are averaged over.
struct Perplexities {
    const double *data = nullptr;
    int count = 0;
};

// Target distances of an embedding: stored for the pairs i < j, row by row, with optional weights, or those between
// points X (n, dimension).
struct Targets {
    const float *condensed = nullptr;
    const float *weights = nullptr;
    const float *points = nullptr;
    std::int64_t dimension = 0;
};

// How a distance d in the map is compared with its target δ: the residual e is d - δ, (d - δ)/δ or log(d/δ).
enum class Residual { absolute, relative, logarithmic };

// What is computed from the residuals e of pairs with weights w: Σ w e², or Σ (w e / unit)^p with p = 2^doublings, each
// with a gradient, or the largest w |e|. If `stretched`, only pairs with e > 0 count, which attract each other.
enum class Summary { squares, powers, largest };

struct Misfit {
    Residual residual = Residual::absolute;
    Summary summary = Summary::squares;
    int doublings = 1;
    double unit = 1;
    bool stretched = false;
};

// A sample of partners: those of point i are i + o modulo n for each offset o, from 1 to n - 1, with the weight of o.
struct Offsets {
    const std::int64_t *data = nullptr;
    const double *weights = nullptr;
    std::int64_t count = 0;
};

// Parameters of one momentum step with gains; the optimiser's rule in Python documents them.
struct Step {
    double rate = 0, momentum = 0, gain_up = 0, gain_down = 0, turned = 0, min_gain = 0, max_step = 0;
};

// A kernel on a mesh, whose origin follows the map. The mesh has the smooth part of the kernel minus `shift`, at its
// frequencies (primitives/fourier.hpp), and `at_zero` is the smooth part at distance 0; pairs closer than `radius`,
// unless it is 0, add the values of the table `near`.
template <class R> struct MeshKernel {
    Mesh mesh;
    double h = 1;  // its width
    const R *frequencies = nullptr;
    double shift = 0, at_zero = 0, radius = 0;
    Table near;
};

// Points sorted into cells, with their charges, for the near field (primitives/near_field.hpp). Coordinates and charges
// are stored by columns, which are padded, so that eight points can be read from any position.
template <class R> struct CellLists {
    Mesh mesh;
    std::int64_t n = 0, stride = 0;
    int m = 0;                      // charges per point
    std::int64_t *start = nullptr;  // (nodes + 1): cell k contains the points start[k] .. start[k + 1] - 1
    std::int32_t *order = nullptr;  // (n)
    R *axes = nullptr;              // (d, stride)
    R *charges = nullptr;           // (m, stride)
};

constexpr std::int64_t CELL_PADDING = 8;  // elements after a column of `CellLists`

// Steps of gradient descent in flat space with edges E of b = -1. The force on point i is pull · E + (push / Z) ∇Φ or,
// with charges (n, 2), 1 and s_i, pull · E + push (s_i ∇Φ[1] + ∇Φ[s]). `momentum` has one value per step. The sides of
// the box around the map, each raised to widest · thin and to `tiny`, must stay between `lower` and `upper`, and the
// widest must not fall below `narrow`.
struct MeshSteps {
    Kernel kernel;
    Weights A;
    double pull = 0, push = 0;
    const double *charges = nullptr;
    Step step;
    const double *momentum = nullptr;
    std::int64_t count = 0;
    double thin = 0, tiny = 0, narrow = 0;
    double lower[3] = {0, 0, 0}, upper[3] = {0, 0, 0};
    double seconds = 0;  // no step begins later than this
};

// A map U (n, d) with the velocity and the gains of its points.
struct MovingMap {
    std::int64_t n = 0;
    int d = 0;
    float *U = nullptr, *velocity = nullptr, *gain = nullptr;
};

// Parameters of one step of negative sampling; the optimiser in Python documents them.
struct Negatives {
    double clip, rate, exaggeration, until;
    int count;  // negatives per edge
    std::uint64_t seed;
    std::int64_t step;
};

// UMAP's kernel k = 1 / (1 + a d2^b), and the constant added to d2 in its repulsion.
struct Membership {
    double a, b, epsilon;
};

// The forces of a loss of pairs, as slopes of tables: one of the repulsion, and `levels` of the attraction, one after
// another, all of pull.size segments; `level` gives the table of each edge.
struct PairTables {
    Table pull, push;
    const std::uint8_t *level = nullptr;
    int levels = 1;
};

}  // namespace eq
