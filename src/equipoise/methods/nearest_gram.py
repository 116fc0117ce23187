"""Base class of PCA, classical MDS and Isomap, with landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._plural import plural
from .._types import Array, Callback
from .._warn import warn
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import array_like
from ..arrays.to_device import to_device
from ..geometry import Flat
from ..inputs import Input
from ..linalg.gram import Factor, Gram
from ..linalg.landmark_choice import Approximation, Error, FromDistances, LandmarkPlan, choose_landmarks
from ..linalg.nystrom import Landmarks
from ..linalg.pca import one_blas_thread
from ..objectives import GramLoss
from .closed_form import ClassicalEmbedding, Model


@dataclass(eq=False, repr=False)
class Scaling(ClassicalEmbedding):
    """Base class of PCA, classical MDS and Isomap, which minimise E = ‖C(G_X − Y Yᵀ)C‖²_F.

    G_X is the Gram matrix of the data, or an approximation G'_X of it from some of the points, the landmarks.
    C = I − 11ᵀ/n subtracts the mean.

    Parameters
    ----------
    sampling : {"uniform", "leverage"}, default="uniform"
        How landmarks are drawn. "leverage" draws points with a probability proportional to their ridge leverage score
        (Musco & Musco 2017), which is large for points that few others can represent; it needs twice as many distances.
        Choose it if a few points, such as outliers, carry an axis of the map.
    eps : float, optional
        Take as many landmarks as ‖G_X − G'_X‖²_F ≤ (1 + eps) ‖G_X − G_k‖²_F needs, where G_k is the best approximation
        of rank k = n_components (Draganov & Dohn 2024, eq. 5). The number doubles until the inequality holds, as
        estimated on 128 rows; `n_landmarks` is its upper limit, by default all points. A warning says if it does not
        hold at this limit.

    Further attributes
    ------------------
    landmarks_ : ndarray of shape (m,) or None
        Indices of the landmarks; None without landmarks.
    low_rank_error_ : float
        Relative error ‖G_X − G'_X‖_F / ‖G_X‖_F, estimated on 64 random rows and on up to 64 whose diagonal entries, or
        their errors, are the largest; 0 without landmarks.
    low_rank_ratio_ : float
        Estimate of ‖G_X − G'_X‖²_F / ‖G_X − G_k‖²_F; NaN without `eps`.
    certificate_ : ndarray of shape (m, 2)
        With solver="flow" and landmarks: the iteration, and a lower bound on ⟨∇, ∇'⟩, at each evaluation of the loss. ∇
        is the gradient with G_X and ∇' that with G'_X, along which the flow moves. While the bound is positive, each
        step is also a descent direction of the loss with G_X; near the minimum it is always negative, because ∇'
        vanishes there and the error of G'_X does not (docs/math.md, section 15). After a run was resumed, only its last
        part is recorded.
    spectrum_ : ndarray
        All eigenvalues of the Gram matrix, descending, computed when the attribute is read. Those of negative sign show
        that the distances do not fit into any R^k. If the points have r < n coordinates, r values; the others are 0.
    negative_mass_ : float
        Σ |λ| over the negative eigenvalues, divided by Σ |λ| over all; 0 for points in R^D.
    """

    _: KW_ONLY
    n_landmarks: int | None = None
    sampling: str = "uniform"
    eps: float | None = None
    _landmarks = cast("Landmarks | None", None)  # no annotation, which would make it a parameter

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        title, shared = "Parameters of landmarks", (Scaling.__doc__ or "").partition("    Parameters\n")[2]
        if cls.__doc__ and title not in cls.__doc__:
            own = shared.partition("\n    Parameters of every")[0][14:]
            cls.__doc__ = f"{cls.__doc__}\n    {title}\n    {'-' * len(title)}{own}"

    def _gram_model(self, data: Input, gram: Gram, found: tuple[Approximation, Error] | None = None) -> Model:
        """Return the model with the Gram matrix `gram`, or with an approximation of it and its error, `found`."""
        error = Error(0.0, 1.0) if found is None else found[1]
        self.landmarks_: Array | None = None if found is None else found[0].chosen
        self.low_rank_error_, self.low_rank_ratio_ = error.relative, error.ratio
        self.certificate_ = np.empty((0, 2))
        if found is not None and self.eps is not None and error.ratio > 1 + self.eps:
            warn(
                f"the squared error with {len(found[0].chosen)} landmarks is about {error.ratio:.3g} times that of the"
                f" best approximation of rank {self.n_components}, more than 1 + eps = {1 + self.eps:g}; increase"
                " n_landmarks or eps"
            )
        return Model(data, GramLoss(gram, error.residual), Flat())

    def _from_landmarks(
        self, data: Input, squared: Callable[[Array], Array], rng: np.random.RandomState, device: str | None
    ) -> Model:
        """Return the model with landmarks; `squared(i)` returns the squared distances from points i to all points."""

        def sketch(chosen: Array) -> FromDistances:
            what = f"{type(self).__name__} of {data.n:,} points with n_landmarks={len(chosen)}"
            need = 32.0 * data.n * len(chosen)  # d², products, a copy and F
            require_memory(need, what, available_memory(), "use fewer rows or a smaller n_landmarks")
            return FromDistances(squared, chosen)

        found, error = choose_landmarks(sketch, data.n, self._plan(), rng)
        self._landmarks = cast(FromDistances, found).landmarks
        self._check_span(found)
        return self._gram_model(data, Factor(to_device(self._landmarks.F, device)), (found, error))

    def _check_span(self, found: Approximation) -> None:
        """Raise if the landmarks span fewer dimensions than the map has."""
        if found.F.shape[1] < self.n_components:
            raise ValueError(
                f"{len(found.chosen)} landmarks span only {plural(found.F.shape[1], 'dimension')}, fewer than"
                f" n_components={self.n_components}; increase n_landmarks or reduce n_components"
            )

    def _observers(self, model: Model) -> list[Callback]:
        """Return a callback that records the certificate of a flow on an approximate Gram matrix."""
        if self.landmarks_ is None:
            return []
        objective, bounds = cast(GramLoss, model.objective), list[tuple[float, float]]()

        def record(iteration: int, loss: float, Y: Array) -> None:
            bounds.append((iteration, objective.certificate(Y)))
            self.certificate_ = np.array(bounds)

        return [record]

    @property
    def spectrum_(self) -> Array:
        """All eigenvalues of the Gram matrix of the data, descending; computed when this attribute is read."""
        check_is_fitted(self, "embedding_")
        need = 24.0 * self._gram.spectrum_size**2
        require_memory(need, f"spectrum_ of {type(self).__name__}", available_memory(), "use fewer rows")
        with one_blas_thread():
            return self._gram.spectrum()

    @property
    def negative_mass_(self) -> float:
        """Σ |λ| over the negative eigenvalues λ of the Gram matrix, divided by Σ |λ| over all; 0 for points in R^D."""
        values = self.spectrum_
        total = float(np.abs(values).sum())
        return abs(float(np.minimum(values, 0.0).sum())) / total if total > 0 else 0.0

    def _prepare_transform(self, model: Model) -> None:
        assert isinstance(model.objective, GramLoss)
        self._gram = model.objective.gram
        self._axes = self._gram.axes(array_like(self._gram.source, self.embedding_))

    def _place_by_gram(self, new: Any) -> Array:
        """Return the positions of new points.

        If the Gram matrix is a `Factor`, `new` contains the coordinates of the new points. If it is an `Inner`, `new`
        contains the squared distances from the new points to all fitted points.
        """
        return self._gram.place(array_like(self._gram.source, new), self._axes)

    def _plan(self) -> LandmarkPlan:
        return LandmarkPlan(self.n_landmarks, self.sampling, self.eps, self.n_components)

    def _uses_landmarks(self, n: int) -> bool:
        """Return whether landmarks are requested; raise if their parameters are invalid for n points."""
        plan = self._plan()
        plan.check(n)
        return plan.wanted
