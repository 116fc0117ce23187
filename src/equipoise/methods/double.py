"""Classical methods with one kernel on the data and another on the map (Draganov & Dohn 2024, section 4)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .._types import Array, Matrix
from ..affinities.bandwidth import Bandwidth, check_bandwidth, check_positive
from ..affinities.builders import Fuzzy, LocallyLinear, Neighborhoods, Radial
from ..arrays.csr import stored_values, symmetrized, with_values
from ..arrays.namespace import array_namespace, is_integer
from ..engines.choose import engine_for_sampling, samples_edges
from ..geometry import Flat
from ..initialize.wide import wide_eigenmap, wide_principal
from ..inputs import Input, make_input
from ..inputs.neighbor_graphs import check_n_neighbors
from ..kernels import Kernel, Membership, StudentT
from ..objectives import DoubleKernelLLE, DoubleKernelPCA, Objective
from ..pair_losses import SquaredDifference
from ..problems.forces import ForceProblem
from ..problems.pair_problems import PairSamplingProblem
from ..problems.several_starts import SeveralStarts
from .edge_sampling import NEGATIVES, check_edge_sampling, pair_objective
from .embedding import Embedding
from .umap import UMAP

# Iterations of UMAP for an initial map of DKPCA. Chosen on digits, a Swiss roll and an S-curve: 200 gave losses up to
# 0.6 % lower than 100, and up to 1.3 % higher.
UMAP_ITERATIONS = 200


@dataclass(eq=False, repr=False, kw_only=True)
class DoubleKernel(Embedding):
    """Embed data by a classical loss with two kernels: Gaussian on the data, Cauchy k = 1/(1 + d2) on the map.

    d2 is the squared distance between two points in the map.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours of each point; reduced to n − 1, with a warning, if it is larger.
    bandwidth : {"local", "global"} or float, default="local" (DKLLE: inf)
        Width σ of the Gaussian kernel on the data. "local": for each point, the root mean square distance to its
        neighbours; "global": the root mean square of the local widths; a number: σ itself; inf: the limit σ → ∞, in
        which the kernel on the data acts like the inner product of the rows.
    """

    init: Any = "spectral"
    n_neighbors: int = 15
    bandwidth: Any = "local"

    def _kernel(self) -> Kernel:
        return StudentT()

    def _neighbors(self, n: int) -> int:
        return min(int(self.n_neighbors), n - 1)

    def _bandwidth(self, n: int) -> Bandwidth:
        return Bandwidth(check_bandwidth(self.bandwidth), check_n_neighbors(self.n_neighbors, n))


@dataclass(eq=False, repr=False, kw_only=True)
class DKLLE(DoubleKernel):
    """Double-kernel LLE: Tr(M K_Y) + (1/n) Σ_ij k, M = (I − W)ᵀ(I − W) (Draganov & Dohn 2024, eq. 8).

    K_Y contains the kernel k of all pairs in the map. W contains the weights, Σ_j w_ij = 1, that best reconstruct
    each point from its neighbours: in the data space, as in LLE, if `bandwidth` is inf, otherwise in the feature
    space of the kernel on the data. The weights need the distances among neighbours, so X must be a table or
    contain all distances. `affinities_` is M, and exaggeration multiplies M in the forces. In `transform`, a new
    point starts at its neighbour with the largest weight.

    Parameters
    ----------
    reg : float, default=0.01
        Regularisation: this fraction of the trace of each local Gram matrix is added to its diagonal before solving for
        the weights.
    """

    # Measured on 70,000 digits of MNIST with local bandwidths: the final loss is 2 % lower than without, and the 10-NN
    # accuracy rises from 97.1 % to 97.4 %. The paper uses none.
    early_exaggeration: float = 4.0
    # The limit of a wide kernel: of the bandwidths compared in benchmarks/papers/double_kernel.py, the one whose maps
    # score most like UMAP's. The paper gives none.
    bandwidth: Any = np.inf
    # LLE's usual 0.001 gives large weights of both signs if 15 neighbours span fewer dimensions: with local
    # bandwidths Σ|M|/n is 11 to 12 on Seeds, Ionosphere and Abalone, and 5 to 6 with 0.01; on 784 pixels 4.8 and 3.9.
    reg: float = 0.01

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        reg = check_positive(self.reg, "reg")
        return LocallyLinear(data, self._bandwidth(data.n), reg, self._n_threads())

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        return DoubleKernelLLE(P, kernel)

    def _symmetric(self, objective: Objective) -> Matrix:
        """Return A + Aᵀ for the adjacency matrix A of the neighbour graph.

        The spectral initial map needs nonnegative affinities, but the matrix M of the loss may have negative entries.
        """
        W = cast(DoubleKernelLLE, objective).weights
        values = stored_values(W)
        return symmetrized(with_values(W, array_namespace(values).ones_like(values)))


@dataclass(eq=False, repr=False, kw_only=True)
class DKPCA(DoubleKernel):
    """Double-kernel PCA: ‖C (K_X − K_Y) C‖²_F, C = I − 11ᵀ/n (Draganov & Dohn 2024, eq. 6).

    K_X and K_Y contain the kernels of all pairs in the data and in the map. `affinities_` is K_X without its diagonal.
    The engines "reference" and "exact" use all pairs; the others use the 3 · n_neighbors nearest points of each point
    and set K_X to 0 for all other pairs.

    The loss has minima of very different quality, and which initial map leads to the lowest depends on the data
    (docs/math.md, section 17). By default four are tried for an early phase of 100 iterations, or half of all if that
    is fewer. The best continues alone, unless the second best is within 10 %: then both run up to iteration 300, and
    the better one continues. These are at most n_iter + 500 iterations in all, besides 200 of UMAP for a start.

    Parameters
    ----------
    n_init : {1, 2, 3, 4}, default=4
        Number of initial maps with init="spectral". The first is the small spectral map; the second is the map of
        UMAP with the same neighbours and the same kernel k; the third is the Laplacian eigenmap of the graph of
        neighbours, spread over 10 kernel lengths to each side; the fourth, if X contains coordinates or all distances,
        the principal components, spread over 3. Any other `init` is the only initial map, and so is "spectral" with
        engine="negative_sampling" or on a curved `geometry`, whose size is fixed. Callbacks see each run in turn, with
        iterations counted from 0; a run that is continued reports from where it stopped.
    n_iter : int, "auto" or None, default=500
        Maximum number of iterations of the run that is kept, as for every Embedding; more than for other methods,
        because maps from a wide start converge slowly.
    engine : str, default="auto"
        One of the engines of every Embedding, or "negative_sampling". The latter minimises the loss as umap-learn
        minimises that of UMAP (Draganov & Dohn 2024, figure 4): K_X contains the memberships of UMAP, an edge attracts
        its ends at a frequency proportional to K_X, each time 5 random points repel each end, and there is no
        centring. n_iter="auto" is then the same as None, because the steps shrink to zero.
    tol : float, default=1e-4
        Relative error allowed in each sum over the points. The force is a small difference of large sums: with 0.01,
        which suffices for other methods, the errors exceed the force and the loss does not converge.
    """

    n_init: int = 4
    n_iter: Any = 500  # digits, 1000 rows: the loss falls from 4.4 n at iteration 100 to 3.9 at 300 and 3.8 at 500
    early_exaggeration: float = 1.0
    tol: float = 1e-4

    def check_parameters(self) -> None:
        super().check_parameters()
        if not is_integer(self.n_init) or self.n_init not in (1, 2, 3, 4):
            raise ValueError(f"n_init must be 1, 2, 3 or 4, got {self.n_init!r}")
        if samples_edges(self.engine):
            check_edge_sampling(self, NEGATIVES, self._geometry())
            if not (isinstance(self.bandwidth, str) and self.bandwidth == "local"):
                raise ValueError(
                    'engine="negative_sampling" takes the memberships of UMAP as the kernel on the data, which have no'
                    f" bandwidth; omit bandwidth={self.bandwidth!r}"
                )

    def _input(self, X: Any) -> Input:
        return make_input(X, self.metric, None)  # the kernel on the data is computed on the CPU

    def _engine(self, requested: str, n: int) -> str:
        return super()._engine(engine_for_sampling(requested), n)

    def _kernel(self) -> Kernel:
        # The same kernel; without centring, the initial map must have about its final extent.
        return Membership() if samples_edges(self.engine) else super()._kernel()

    def _problem_class(self) -> type[ForceProblem]:
        return PairSamplingProblem if samples_edges(self.engine) else SeveralStarts

    def _build(self, X: Any, y: Any = None, init: Any = None) -> tuple[ForceProblem, Input, Neighborhoods]:
        problem, data, neighborhoods = super()._build(X, y, init)
        if isinstance(problem, SeveralStarts) and init is None and _is_spectral(self.init):
            problem.further_starts = self._other_starts(problem, data, self._device(X))
        return problem, data, neighborhoods

    def _other_starts(self, problem: ForceProblem, data: Input, device: str | None) -> list[Array]:
        """Return the initial maps besides the first; none on curved surfaces, whose size is fixed.

        `device` is the PyTorch device of the fit, or None.
        """
        if self.n_init == 1 or not isinstance(problem.geometry, Flat):
            return []
        D2, _ = data.neighbors(self._neighbors(data.n), self._n_threads())
        length = problem.objective.kernel.length
        eigenmap = wide_eigenmap(D2, self.n_components, length)
        maps = [self._map_by_umap(D2, eigenmap, device), eigenmap]
        if self.n_init == 4 and data.has_principal:
            maps.append(wide_principal(data, self.n_components, length))
        return maps[: self.n_init - 1]

    def _map_by_umap(self, D2: Matrix, Y0: Array, device: str | None) -> Array:
        """Return UMAP's map of the graph of neighbours, `D2` CSR (n, n), started at Y0; on a GPU if the fit runs there.

        With a = b = 1, UMAP's kernel is that of DKPCA, so that its maps have about the scale of DKPCA's.
        """
        on_gpu = device == "cuda"
        D = with_values(D2, np.sqrt(stored_values(D2)))
        k = int(np.diff(D2.indptr).min())
        method = UMAP(
            self.n_components,
            metric="precomputed",
            n_neighbors=k + 1,  # counts the point itself
            a=1.0,
            b=1.0,
            init=Y0,
            n_iter=UMAP_ITERATIONS,
            engine="torch" if on_gpu else "auto",
            device="cuda" if on_gpu else "cpu",
            deterministic=self.deterministic,
            random_state=0,
            n_jobs=self.n_jobs,
        )
        with warnings.catch_warnings():  # the fit warns of the same duplicates and components itself
            warnings.simplefilter("ignore", UserWarning)
            return np.asarray(method.problem(D).optimize(), dtype=np.float64)

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        bandwidth = self._bandwidth(data.n)
        if samples_edges(self.engine):
            return Fuzzy(max(2, bandwidth.k), self._n_threads())
        if self.bandwidth == np.inf:
            raise ValueError("bandwidth=inf makes the kernel on the data constant; use a finite bandwidth for DKPCA")
        return Radial(bandwidth, self._n_threads())

    def _bytes_per_pair(self, data: Input, engine: str) -> float:
        return 0.0 if data.sparse or engine not in ("exact", "reference") else 24.0  # d², the exponent and K_X

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        if samples_edges(self.engine):
            return pair_objective(P, kernel, SquaredDifference(), NEGATIVES)
        return DoubleKernelPCA(P, kernel)


def _is_spectral(init: Any) -> bool:
    """Return whether `init` is "spectral" and not an array."""
    return isinstance(init, str) and init == "spectral"
