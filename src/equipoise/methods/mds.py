"""Multidimensional scaling: find the map whose distances best match given dissimilarities, by minimising stress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .. import progress
from .._plural import plural
from .._suggest import did_you_mean
from .._types import Array, Callback
from .._warn import warn
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import (
    check_random_state,
    is_auto,
    is_device_array,
    is_finite,
    is_integer,
    on_device_of,
    to_numpy,
)
from ..data.checks.dissimilarities import check_pair_weights
from ..engines import choose_device
from ..engines.choose import check_device_name
from ..initialize.classical_scaling import INITS, check_start, first_map
from ..initialize.random import random_ball
from ..initialize.start import check_init_name
from ..inputs import FromSpace, Input, make_input
from ..inputs.make import check_metric_name
from ..linalg.pca import on_one_blas_thread, one_blas_thread
from ..memory import require_memory_for_pairs
from ..objectives.stress.metric import Misfit
from ..objectives.stress.worst_case import BOUND_POINTS, DOUBLINGS, WorstCase, worst_case_bound
from ..optimize.majorize import SOLVERS
from ..optimize.placement import place_by_stress
from ..optimize.placement_by_residuals import refine_placement
from ..optimize.rules import MAX_ITER, check_n_iter
from ..problems.build_stress import RESIDUALS, STRESSES, WORST_CASES, StressInput, choose_engine
from ..problems.stress import StressProblem
from ..problems.stress_pairs import equal_rows, known_pairs, require_connected
from ..saving.checkpoint import Checkpoint
from .estimator import (
    Estimator,
    accepts_cupy,
    check_callbacks,
    check_n_components,
    check_placed,
    check_verbose,
    lock_checkpoints,
    report_remaining_gain,
)
from .verbose import print_loss

ENGINES = ("auto", "stored", "recomputed", "listed", "random_pairs", "torch")
NOISE = 0.01  # added to starts of logarithmic stress, relative to the radius, so that no points coincide; chosen
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
        A metric of scikit-learn, a function of two rows, "mixed", `Mixed` or `Blocks` for data frames of several kinds
        of columns, or "precomputed". With "precomputed", X (n, n) contains the dissimilarities: NaN where one is
        missing, or only the known dissimilarities in a sparse matrix. X may also be a metric space, an object with `n`
        and `distances(i, j)`.
    weights : ndarray or sparse matrix of shape (n, n), optional
        Symmetric weights w; 0 excludes a pair. All 1 by default.
    stress : {"metric", "relative", "log", "max", "max_ratio", "ordinal"}, default="metric"
        "metric" is Σ w (d − δ)². "relative" is Σ w ((d − δ)/δ)², and "log" is Σ w (log d − log δ)²: small distances
        count as much as large ones. "max" minimises the largest w |d − δ|, and "max_ratio" the largest w |log(d/δ)|,
        the factor by which a distance grows or shrinks. "relative", "log" and "max_ratio" need positive δ. "ordinal"
        uses only the order of δ: the loss is Kruskal's stress-1 squared. Two pairs with equal δ may have different
        distances in the map (the primary treatment of ties).
    init : {"auto", "classical", "pca", "random"} or ndarray of shape (n, d), default="auto"
        "pca": principal components of the table; "random": uniform in a disk or ball; "classical" or "auto": classical
        scaling from the distances to at most 200 points; or a user-supplied map. For metric stress of a dense Euclidean
        table, "classical" is "pca", unless `weights` is sparse or contains a 0.
    n_init : int, default=1
        Number of starts: the first uses `init`, and all others are random. The map with the lowest loss is returned.
    n_iter : int or "auto", default=300
        Maximum number of iterations of each start; "auto" is 5,000, so that almost every run ends by `tol`.
    solver : {"lbfgs", "smacof", "descent"}, default="lbfgs"
        "lbfgs" accelerates majorising steps by L-BFGS; "smacof" takes plain majorising steps and needs many more of
        them; "descent" is gradient descent, Y ← Y − learning_rate ∇σ. "log" needs "lbfgs" or "descent", and "max" and
        "max_ratio" need "lbfgs".
    learning_rate : float or "auto", default="auto"
        Rate of solver="descent". "auto" is 1/(2n) for metric stress without weights, which is SMACOF. Any rate below
        1/n lowers that stress at every step.
    tol : float, default=1e-5
        Stop when the last ten iterations together have decreased the loss by less than this fraction of the loss.
    engine : {"auto", "stored", "recomputed", "listed", "random_pairs", "torch"}, default="auto"
        "stored" stores δ of all pairs in float32. "recomputed" computes Euclidean δ from X at every evaluation.
        "listed" uses the pairs stored in sparse weights or distances. "random_pairs" compares each point with 512
        random points, so that the loss is an estimate. "torch" compares all pairs with PyTorch on a GPU or the CPU, in
        float64; input checks, non-Euclidean distances, the initial map, the steps and `transform` run on the CPU.
        Unless `device` or X selects "torch", "auto" is "listed" for sparse weights or distances; otherwise "stored" if
        there are weights, missing distances or at most 10,000 points; otherwise "random_pairs". The old name of
        "random_pairs", "sampled", is deprecated. "max" and "max_ratio" compare all pairs: beyond 10,000 points "auto"
        is "recomputed" where possible.
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
        Final stress, as defined by `stress`. For "ordinal" it is stress-1 squared; for "max" the p-norm of w (d − δ)
        and for "max_ratio" that of w log(d/δ), with p = 1024. With engine="random_pairs" it is an estimate that is too
        low, because the map fits the sampled pairs.
    loss_curve_ : ndarray of shape (m, 2)
        Iteration and loss at each of m evaluations.
    stress_1_ : float
        Kruskal's stress-1, √(Σ w (d − δ)² / Σ w d²). For stress="ordinal", δ is replaced by the disparities: the values
        in the order of δ that are nearest to d.
    worst_case_ : float
        For "max", the largest w |d − δ|; for "max_ratio", the largest (d/δ)^w or (δ/d)^w.
    worst_case_bound_ : float
        For "max" and "max_ratio", a number below which `worst_case_` of no map in d dimensions can be (docs/math.md,
        eq. (S4) to (S6)). NaN above 2,000 points, or if some pairs are unknown or have weight 0.
    n_iter_ : int
        Number of iterations of the start that gave the best map.
    remaining_gain_ : float
        Estimate of how much further iterations would lower the loss at most, as a fraction of the loss (docs/math.md,
        eq. (R1)); infinite after a single iteration, and NaN after none.
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
    n_iter: Any = 300
    solver: str = "lbfgs"
    learning_rate: Any = "auto"
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
        engine = choose_engine(requested, self.stress, source, W, STORED)
        if bytes_per_pair := self._bytes_per_pair(source, engine):
            sampled = self.stress not in ("ordinal", *WORST_CASES) and W is None and source.known is None
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
        pairs = StressInput(source, W, known, engine, device, STORED, self._n_threads())
        stress, start_from = pairs.build(self.stress, rng)
        progress.stage("initial map")
        if isinstance(self.init, str) and self.init == "pca":
            start_from = source
        starts = [first_map(self.init, start_from, known, self.n_components, rng)]
        starts += [random_ball(source.n, self.n_components, rng) for _ in range(self.n_init - 1)]
        supplied = 0 if isinstance(self.init, str) else 1  # a user-supplied map is not rescaled
        starts = starts[:supplied] + [Y * stress.scale(Y) for Y in starts[supplied:]]
        if RESIDUALS.get(self.stress) == "logarithmic":
            starts = [*map(self._require_separate, starts[:supplied]), *(_separate(Y, rng) for Y in starts[supplied:])]
        n_iter = MAX_ITER if is_auto(self.n_iter) else self.n_iter
        return StressProblem(stress, engine, starts, self.solver, n_iter, self.tol, self.learning_rate), source

    def _require_separate(self, Y: Array) -> Array:
        if (pair := equal_rows(Y)) is not None:
            raise ValueError(
                f"init puts points {pair[0]} and {pair[1]} at the same position, where stress={self.stress!r} is"
                " infinite; move them apart"
            )
        return Y

    def _bytes_per_pair(self, source: Input, engine: str) -> float:
        """Return the peak main memory of a fit in bytes, divided by n²; 0 if not all pairs are stored."""
        # Measured as the peak of fits of 4,000 points, less blocks of fixed size: δ of the pairs i < j in float32; for
        # ordinal stress δ, its ranks and their order in float64; for PyTorch both halves of δ, and distances.
        if self.stress == "ordinal":
            return 34.0
        if self.stress in WORST_CASES and source.n <= BOUND_POINTS:
            return 80.0  # the eigenvectors and the pairs of the bound, in float64
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
            if self.stress != "ordinal":
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
                self._set_curves(problem)
                self.stress_1_ = self._stress_1(problem)
                if isinstance(problem.stress, WorstCase):
                    self._set_worst_case(problem.stress, problem.Y)
        report_remaining_gain(problem, self.n_iter, self.verbose)
        return self

    def _set_worst_case(self, stress: WorstCase, Y: Array) -> None:
        worst, bound, n = stress.pairs.largest(Y.astype(np.float64)), np.nan, self._source.n
        W = None if self.weights is None else check_pair_weights(self.weights, n)
        if n <= BOUND_POINTS and known_pairs(self._source, W) is None:
            D = self._source.block(np.arange(n))
            bound = worst_case_bound(D, self.n_components, stress.pairs.residual, W)
        is_ratio = self.stress == "max_ratio"
        self.worst_case_, self.worst_case_bound_ = (float(np.exp(x) if is_ratio else x) for x in (worst, bound))

    def _stress_1(self, problem: StressProblem) -> float:
        if self.stress == "ordinal":
            return float(np.sqrt(self.loss_))
        Y, loss, stress = problem.Y.astype(np.float64), self.loss_, problem.stress
        if self.stress != "metric":
            pairs: Any = stress.pairs if isinstance(stress, WorstCase) else stress
            stress = pairs.with_residual("absolute")
            loss = pairs.sums(Y, Misfit())[0]
        squares = -float((Y * stress.attraction(Y)).sum()) / 2  # Σ w d² = tr YᵀVY
        return float(np.sqrt(loss / squares)) if squares > 0 else 0.0

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed X and return the map (n, d)."""
        return self.fit(X).embedding_

    @accepts_cupy
    @on_one_blas_thread
    def transform(self, X: Any) -> Array:
        """Place each new row in the fitted map by minimising its stress Σ_j (‖y − y_j‖ − δ_j)².

        δ_j is the dissimilarity of the row to the fitted point j, and y_j the position of that point. The sum is over
        all fitted points, or over a sample of 10,000 if there are more. Other kinds of `stress` are minimised in the
        same way, from that position. A row with δ_j = 0 is placed at y_j.

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
                'transform is not available after stress="ordinal": the order of the dissimilarities does not determine'
                " the position of a new point"
            )
        n = self._source.n
        with self._explain_out_of_memory(X, n):
            source = self._source
            rows = source.check_new(X if isinstance(source, FromSpace) else self._check_rows(X, source))
            sample = np.arange(n) if n <= STORED else np.sort(np.random.RandomState(0).permutation(n)[:STORED])
            fitted = to_numpy(self.embedding_)[sample]

            def distances(part: slice) -> Array:
                return self._source.new_block(rows[part], sample)

            Y = place_by_stress(distances, rows.shape[0], fitted, self._n_threads())
            if self.stress != "metric":
                doublings = DOUBLINGS if self.stress in WORST_CASES else 1
                Y = refine_placement(Y, distances, fitted, RESIDUALS[self.stress], doublings)
            return on_device_of(X if is_device_array(self.embedding_) else None, check_placed(Y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def check_parameters(self) -> None:
        check_n_components(self.n_components)
        check_metric_name(self.metric, pairs=True)
        check_init_name(self.init, INITS)
        check_device_name(self.device)
        if not (is_integer(self.n_init) and self.n_init >= 1):
            raise ValueError(f"n_init must be an integer >= 1, got {self.n_init!r}")
        for name, allowed in (("stress", STRESSES), ("solver", SOLVERS), ("engine", (*ENGINES, "sampled"))):
            value = getattr(self, name)
            if not (isinstance(value, str) and value in allowed):
                options = ", ".join(repr(option) for option in allowed if option != "sampled")
                raise ValueError(f"unknown {name} {value!r}; {did_you_mean(value, allowed, f'choose from {options}')}")
        if self.solver != "lbfgs" and (self.stress in WORST_CASES or (self.stress, self.solver) == ("log", "smacof")):
            raise ValueError(f'solver="{self.solver}" does not support stress="{self.stress}"; use solver="lbfgs"')
        if self.solver != "descent" and self.learning_rate != "auto":
            raise ValueError(
                f'learning_rate={self.learning_rate!r} is used by solver="descent" only, got solver="{self.solver}";'
                ' use solver="descent", or omit learning_rate'
            )
        if self.learning_rate != "auto" and not (is_finite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f'learning_rate must be a positive number or "auto", got {self.learning_rate!r}')
        if not (is_finite(self.tol) and 0 <= self.tol < 1):
            raise ValueError(f"tol must be a number in [0, 1), got {self.tol!r}")
        check_callbacks(self.callbacks, self.random_state)
        if not is_auto(self.n_iter):
            check_n_iter(self.n_iter, ' or "auto"')
        self._n_threads()


def _separate(Y: Array, rng: np.random.RandomState) -> Array:
    """Return an initial map with a little noise: coincident points would have an infinite logarithmic stress."""
    radius = float(np.sqrt(np.square(Y - Y.mean(axis=0)).sum(axis=1).mean()))
    return Y + NOISE * radius * rng.standard_normal(Y.shape)
