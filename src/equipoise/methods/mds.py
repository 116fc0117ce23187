"""Multidimensional scaling: find the map whose distances best match given dissimilarities, by minimising stress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from .. import progress
from .._plural import plural
from .._types import Array, Callback, Matrix
from .._warn import warn
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import check_random_state, is_device_array, is_finite, is_integer, on_device_of, to_numpy
from ..data.checks.dissimilarities import check_pair_weights, check_size
from ..engines import choose_device
from ..initialize.classical_scaling import check_start, first_map
from ..initialize.random import random_ball
from ..inputs import Distances, FromSpace, Input, make_input
from ..linalg.pca import on_one_blas_thread, one_blas_thread
from ..memory import require_memory_for_pairs
from ..objectives.stress.metric import AllPairs, FromPoints, Listed, Stress
from ..objectives.stress.ordinal import OrdinalStress
from ..optimize.majorize import SOLVERS
from ..optimize.placement import place_by_stress
from ..problems.forces import check_n_iter
from ..problems.stress import StressProblem
from ..problems.stress_pairs import (
    condensed_weights,
    known_pairs,
    random_pairs,
    require_connected,
    stress_on_device,
    weights_of,
)
from ..saving.checkpoint import Checkpoint
from .estimator import (
    Estimator,
    accepts_cupy,
    check_callbacks,
    check_n_components,
    check_placed,
    check_verbose,
    lock_checkpoints,
    print_loss,
)

STRESSES = ("metric", "ordinal")
ENGINES = ("auto", "stored", "recomputed", "listed", "random_pairs", "torch")
STORED = 10_000  # points up to which all δ are stored, 200 MB at most, on a device 400 MB; chosen


@dataclass(eq=False, repr=False)
class MDS(Estimator):
    """Multidimensional scaling: σ(Y) = Σ_{i<j} w_ij (d_ij − δ_ij)² for distances d in the map and dissimilarities δ.

    The force −∇_i σ = −2 Σ_j w_ij (y_i − y_j) + 2 Σ_j w_ij (δ_ij/d_ij)(y_i − y_j) is attraction plus repulsion: every
    pair attracts like a spring of length 0 and repels with a force that does not decrease with distance (docs/math.md,
    section 14). For unit weights, gradient descent with rate 1/(2n) is SMACOF.

    Parameters
    ----------
    n_components : int, default=2
        Dimension d of the map.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn, a function of two rows, or "precomputed". With "precomputed", X (n, n) contains the
        dissimilarities: NaN where one is missing, or only the known dissimilarities in a sparse matrix. X may also be a
        metric space, an object with `n` and `distances(i, j)`.
    weights : ndarray or sparse matrix of shape (n, n), optional
        Symmetric weights w; 0 excludes a pair. All 1 by default.
    stress : {"metric", "ordinal"}, default="metric"
        "ordinal" uses only the order of δ: the loss is Kruskal's stress-1 squared. Two pairs with equal δ may have
        different distances in the map (the primary treatment of ties).
    init : {"auto", "classical", "pca", "random"} or ndarray of shape (n, d), default="auto"
        "pca": principal components of the table; "random": uniform in a disk or ball; "classical" or "auto": classical
        scaling from the distances to at most 200 points; or a user-supplied map. For metric stress of a dense Euclidean
        table, "classical" is "pca", unless `weights` is sparse or contains a 0.
    n_init : int, default=1
        Number of starts: the first uses `init`, and all others are random. The map with the lowest loss is returned.
    n_iter : int, default=300
        Maximum number of iterations of each start.
    solver : {"lbfgs", "smacof"}, default="lbfgs"
        "lbfgs" accelerates majorising steps by L-BFGS; "smacof" takes plain majorising steps and needs many more of
        them.
    tol : float, default=1e-5
        Stop when the last ten iterations together have decreased the loss by less than this fraction of the loss.
    engine : {"auto", "stored", "recomputed", "listed", "random_pairs", "torch"}, default="auto"
        "stored" stores δ of all pairs in float32. "recomputed" computes Euclidean δ from X at every evaluation.
        "listed" uses the pairs stored in sparse weights or distances. "random_pairs" compares each point with 512
        random points, so that the loss is an estimate. "torch" compares all pairs with PyTorch on a GPU or the CPU, in
        float64; input checks, non-Euclidean distances, the initial map, the steps and `transform` run on the CPU.
        Unless `device` or X selects "torch", "auto" is "listed" for sparse weights or distances; otherwise "stored" if
        there are weights, missing distances or at most 10,000 points; otherwise "random_pairs". The old name of
        "random_pairs", "sampled", is deprecated.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device for engine="torch"; "auto" is a GPU if one is available. With engine="auto", device="cuda" or a PyTorch
        tensor X on a GPU selects engine="torch". That engine maps a tensor X to a tensor on the device of X.
    random_state : int, RandomState or None, default=None
        The same seed gives byte-identical results for any number of threads.
    n_jobs : int, optional
        Number of threads; by default all cores, or OMP_NUM_THREADS if that is fewer.
    callbacks : sequence of callable or Checkpoint, default=()
        Functions are called with (iteration, loss, Y) after every iteration and stop the run by returning True. A
        `Checkpoint` saves the run to a file, to resume it after an interruption.
    verbose : int, default=0
        1 prints the engine and shows progress and loss: bars in a terminal or notebook, otherwise lines.

    Attributes
    ----------
    embedding_ : ndarray or Tensor of shape (n, d)
        The map.
    loss_ : float
        Final stress σ, or for stress="ordinal" stress-1 squared. With engine="random_pairs" it is an estimate that is
        too low, because the map fits the sampled pairs.
    loss_curve_ : ndarray of shape (m, 2)
        Iteration and loss at each of m evaluations.
    stress_1_ : float
        Kruskal's stress-1, √(Σ w (d − δ)² / Σ w d²). For stress="ordinal", δ is replaced by the disparities: the values
        in the order of δ that are nearest to d.
    n_iter_ : int
        Number of iterations of the start that gave the best map.
    engine_ : str
        The engine that ran.
    """

    n_components: int = 2
    _: KW_ONLY
    metric: Any = "euclidean"
    weights: Any = None
    stress: str = "metric"
    init: Any = "auto"
    n_init: int = 1
    n_iter: int = 300
    solver: str = "lbfgs"
    tol: float = 1e-5
    engine: str = "auto"
    device: str = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    callbacks: Sequence[Callback | Checkpoint] = ()
    verbose: int = 0

    @accepts_cupy
    def problem(self, X: Any) -> StressProblem:
        """Return the unsolved problem for X: stress, gradient, forces and initial maps."""
        with one_blas_thread(), self._explain_out_of_memory(X):
            return self._build(X)[0]

    def _build(self, X: Any) -> tuple[StressProblem, Input]:
        self.check_parameters()
        requested, device = choose_device(self._engine_name(), self.device, X)
        source = make_input(X, self.metric, pairs=True).centered()
        self._record_features(X, source)
        check_start(self.init, source)
        if self.weights is not None and not sparse.issparse(self.weights):  # a copy, W − Wᵀ and a mask
            require_memory_for_pairs(source.n, 17.0, "MDS", "use fewer rows or sparse weights")
        W = None if self.weights is None else check_pair_weights(self.weights, source.n)
        engine = self._choose_engine(requested, source, W)
        if bytes_per_pair := self._bytes_per_pair(source, engine):
            sampled = self.stress == "metric" and W is None and source.known is None
            advice = "use fewer rows" + (' or engine="random_pairs"' if sampled else "")
            require_memory_for_pairs(source.n, bytes_per_pair, "MDS", advice)
        known = known_pairs(source, W)
        if known is not None:
            require_connected(known)
        rng = check_random_state(self.random_state)
        what = f"a map with n_components={self.n_components}"
        d = float(self.n_components) if is_finite(self.n_components) else float("inf")
        require_memory(80.0 * source.n * d, what, available_memory(), "use fewer components or rows")
        progress.stage("dissimilarities")
        if engine == "torch":
            stress, start_from = stress_on_device(device, source, W, STORED, self._n_threads()), source
        else:
            stress, start_from = self._stress(source, W, known, engine, rng)
        progress.stage("initial map")
        if isinstance(self.init, str) and self.init == "pca":
            start_from = source
        starts = [first_map(self.init, start_from, known, self.n_components, rng)]
        starts += [random_ball(source.n, self.n_components, rng) for _ in range(self.n_init - 1)]
        supplied = 0 if isinstance(self.init, str) else 1  # a user-supplied map is not rescaled
        starts = starts[:supplied] + [Y * stress.scale(Y) for Y in starts[supplied:]]
        return StressProblem(stress, engine, starts, self.solver, self.n_iter, self.tol), source

    def _stress(
        self, source: Input, W: Matrix | None, known: Matrix | None, engine: str, rng: np.random.RandomState
    ) -> tuple[Stress, Input]:
        """Return the loss, and the input for the initial map: the ranks of δ for ordinal stress, otherwise `source`."""
        n, n_threads = source.n, self._n_threads()
        if engine == "recomputed":
            assert source.points is not None
            return FromPoints(source.points, n_threads), source
        if engine == "random_pairs":
            pairs = random_pairs(n, rng.randint(2**31 - 1))
            delta = source.stored_pairs(pairs, n_threads)
            check_size(float(delta.max()))
            return Listed(delta, pairs, n_threads), source
        if engine == "listed":
            assert known is not None
            check_size(float(known.data.max(initial=0.0)))
            return Listed(known.data, weights_of(known, W), n_threads), source
        ordinal = self.stress == "ordinal"
        delta = source.condensed(np.float64 if ordinal else np.float32, n_threads)
        w = condensed_weights(delta, W)
        check_size(float(delta.max(initial=0.0)))
        if not ordinal:
            return AllPairs(delta, n, n_threads, w), source
        ranks = Distances(squareform(rankdata(delta)))
        return OrdinalStress(delta, n, n_threads, w), ranks

    def _bytes_per_pair(self, source: Input, engine: str) -> float:
        """Return the peak main memory of a fit in bytes, divided by n²; 0 if not all pairs are stored."""
        # Measured as the peak of fits of 4,000 points, less blocks of fixed size: δ of the pairs i < j in float32; for
        # ordinal stress δ, its ranks and their order in float64; for PyTorch both halves of δ, and distances.
        if self.stress == "ordinal":
            return 34.0
        if engine == "torch" and (source.points is None or source.n <= STORED):
            return 8.0
        return 2.0 if engine == "stored" else 0.0

    def _gpu_bytes(self, n: int, D: int) -> float:
        return 16.0 * n * (n + D)  # all δ, if they are stored, and a tile of distances

    def _engine_name(self) -> str:
        """Return `engine`, with the deprecated name "sampled" replaced."""
        if self.engine != "sampled":
            return self.engine
        warn('MDS(engine="sampled") is now called engine="random_pairs"; the old name will be removed', FutureWarning)
        return "random_pairs"

    def _choose_engine(self, engine: str, source: Input, W: Matrix | None) -> str:
        is_sparse = source.sparse or sparse.issparse(W)
        if engine == "auto":
            small = source.n <= STORED or W is not None or source.known is not None
            engine = "listed" if is_sparse else "stored" if small else "random_pairs"
        if self.stress == "ordinal" and engine == "torch":
            raise ValueError('engine="torch" does not support stress="ordinal"; use engine="stored" with dense input')
        if self.stress == "ordinal" and (engine != "stored" or is_sparse):
            raise ValueError(
                'stress="ordinal" ranks all pairs and needs dense input and engine="stored", which is the default up to'
                f" {STORED} points; got engine={engine!r} and {'sparse' if is_sparse else 'dense'} input for"
                f" {source.n} points"
            )
        if engine == "recomputed" and (source.points is None or W is not None):
            raise ValueError(
                'engine="recomputed" needs a dense table (n, D) with the Euclidean metric and no weights; use'
                ' engine="auto"'
            )
        if engine == "random_pairs" and (W is not None or source.known is not None):
            raise ValueError('engine="random_pairs" does not support weights or missing distances; use engine="auto"')
        if engine == "torch" and is_sparse:
            raise ValueError('engine="torch" compares all pairs; for sparse weights or distances use engine="listed"')
        if engine == "listed" and not is_sparse:
            raise ValueError('engine="listed" needs sparse weights or distances; for dense input use engine="auto"')
        if is_sparse and engine != "listed":
            raise ValueError(
                f'engine={engine!r} needs dense input; for sparse weights or distances use engine="listed"'
            )
        return engine

    @accepts_cupy
    def fit(self, X: Any, y: Any = None) -> MDS:
        """Embed X.

        Ctrl-C raises KeyboardInterrupt; `embedding_` is then the best map so far.

        Parameters
        ----------
        X : array-like of shape (n, D), dissimilarities (n, n) if metric="precomputed", or a metric space
        y : ignored

        Returns
        -------
        self : MDS
        """
        shown = progress.shown(check_verbose(self.verbose))
        with one_blas_thread(), lock_checkpoints(self.callbacks), shown as displayed, self._explain_out_of_memory(X):
            problem, self._source = self._build(X)
            if self.stress == "metric":
                self._source.warn_if_not_metric()
            self.engine_ = problem.engine
            if self.verbose:
                n, d = problem.Y0.shape
                progress.end_stage()
                print(
                    f"engine {problem.engine}: {n:,} points in {d}-D, {plural(len(problem.starts), 'start')}",
                    flush=True,
                )
            try:
                problem.optimize(callbacks=[*self.callbacks, *([print_loss] if self.verbose and not displayed else [])])
            finally:
                self.embedding_ = on_device_of(X if problem.engine == "torch" else None, problem.Y)
                self.loss_curve_ = problem.loss_curve
                self.loss_ = float(self.loss_curve_[-1, 1]) if len(self.loss_curve_) else np.nan
                self.n_iter_ = problem.n_iter
                self.stress_1_ = self._stress_1(problem)
        return self

    def _stress_1(self, problem: StressProblem) -> float:
        if self.stress == "ordinal":
            return float(np.sqrt(self.loss_))
        Y = problem.Y.astype(np.float64)
        squares = -float((Y * problem.attraction(Y)).sum()) / 2  # Σ w d² = tr YᵀVY
        return float(np.sqrt(self.loss_ / squares)) if squares > 0 else 0.0

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed X and return the map (n, d)."""
        return self.fit(X).embedding_

    @accepts_cupy
    @on_one_blas_thread
    def transform(self, X: Any) -> Array:
        """Place each new row in the fitted map by minimising its stress Σ_j (‖y − y_j‖ − δ_j)².

        δ_j is the dissimilarity of the row to the fitted point j, and y_j the position of that point. The sum is over
        all fitted points, or over a sample of 10,000 if there are more. A row with δ_j = 0 is placed at y_j.

        Parameters
        ----------
        X : array-like of shape (m, D), or distances (m, n) to the fitted points if metric="precomputed"

        Returns
        -------
        Y : ndarray or Tensor of shape (m, d)
        """
        check_is_fitted(self, "embedding_")
        if self.stress == "ordinal":
            raise ValueError(
                'transform needs a map fitted with stress="metric": the order of the dissimilarities does not determine'
                " the position of a new point"
            )
        n = self._source.n
        with self._explain_out_of_memory(X, n):
            rows = self._source.check_new(X if isinstance(self._source, FromSpace) else self._check_rows(X))
            sample = np.arange(n) if n <= STORED else np.sort(np.random.RandomState(0).permutation(n)[:STORED])
            fitted = to_numpy(self.embedding_)[sample]
            Y = place_by_stress(
                lambda part: self._source.new_block(rows[part], sample), rows.shape[0], fitted, self._n_threads()
            )
            return on_device_of(X if is_device_array(self.embedding_) else None, check_placed(Y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def check_parameters(self) -> None:
        check_n_components(self.n_components)
        if not (is_integer(self.n_init) and self.n_init >= 1):
            raise ValueError(f"n_init must be an integer >= 1, got {self.n_init!r}")
        for name, allowed in (("stress", STRESSES), ("solver", SOLVERS), ("engine", (*ENGINES, "sampled"))):
            value = getattr(self, name)
            if not (isinstance(value, str) and value in allowed):
                options = ", ".join(repr(option) for option in allowed if option != "sampled")
                raise ValueError(f"unknown {name} {value!r}; choose from {options}")
        if not (is_finite(self.tol) and 0 <= self.tol < 1):
            raise ValueError(f"tol must be a number in [0, 1), got {self.tol!r}")
        check_callbacks(self.callbacks, self.random_state)
        check_n_iter(self.n_iter)
        self._n_threads()
