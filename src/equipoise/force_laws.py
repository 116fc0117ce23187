"""Force laws and kernels as functions of distance (Lin et al. 2024, Table 1, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import Array
from .arrays.namespace import is_positive
from .methods import Embedding, NeighborEmbedding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class ForceCurves:
    """Forces of several methods as functions of distance.

    Attributes
    ----------
    r : ndarray of shape (m,)
        Distances.
    attraction, repulsion : dict of str to ndarray of shape (m,)
        Magnitudes of the forces; the keys are the methods as text, such as "TSNE()".
    """

    r: Array
    attraction: dict[str, Array]
    repulsion: dict[str, Array]

    def __repr__(self) -> str:
        return (
            f"<forces of {', '.join(self.attraction)} at {len(self.r):,} distances from {self.r.min():g} to"
            f" {self.r.max():g}; figure() draws them>"
        )

    def figure(self) -> Figure:
        """Return a matplotlib figure with attraction on the left and repulsion on the right."""
        from .views.force_figure import force_figure

        return force_figure(self.r, self.attraction, self.repulsion)


def forces(*methods: NeighborEmbedding, r: Array | None = None, p: float = 1.0, Z: float = 1.0) -> ForceCurves:
    """Return the attraction and repulsion of two points as functions of their distance.

    Parameters
    ----------
    *methods : estimators
        Methods with a kernel, such as TSNE() or GSNE(beta=2, eta=0.25); they need not be fitted.
    r : array-like of shape (m,), optional
        Distances in the map; by default 400 distances from 0.02 to 5.
    p : float, default=1.0
        Affinity of the two points. If the loss is the KL divergence, the attraction is proportional to p.
    Z : float, default=1.0
        Normaliser in Q = k/Z. If the loss is the KL divergence, the repulsion is proportional to 1/Z.

    Returns
    -------
    curves : ForceCurves

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import TSNE, forces
    >>> curves = forces(TSNE(), r=np.array([1.0]))
    >>> float(curves.attraction["TSNE()"][0]), float(curves.repulsion["TSNE()"][0])  # 4 p r/(1+r²), 4 r/(1+r²)²/Z
    (2.0, 1.0)
    """
    _check_methods(methods, "forces")
    for name, value in (("p", p), ("Z", Z)):
        if not is_positive(value):
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    r = np.linspace(0.02, 5, 400) if r is None else _check_distances(r)
    curves = {_name(method): method.pair_forces(r, p, Z) for method in methods}
    return ForceCurves(r, {k: a for k, (a, _) in curves.items()}, {k: b for k, (_, b) in curves.items()})


@dataclass(frozen=True, repr=False)
class KernelCurves:
    """Kernels of several methods as functions of distance.

    Attributes
    ----------
    r : ndarray of shape (m,)
        Distances.
    similarity : dict of str to ndarray of shape (m,)
        k(r²)/k(0); the keys are the methods as text, such as "TSNE()".
    p : float
        A similarity, relative to that of coincident points.
    distance : dict of str to float
        The distance at which the similarity is p, for each method; NaN if it is p at none of the distances r.
    """

    r: Array
    similarity: dict[str, Array]
    p: float
    distance: dict[str, float]

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {value:.3g}" for name, value in self.distance.items())
        return f"<kernels with the similarity {self.p:g} at the distances: {found}; figure() draws them>"

    def figure(self) -> Figure:
        """Return a matplotlib figure of the kernels, with the distances at which their similarity is p."""
        from .views.force_figure import kernel_figure

        return kernel_figure(self.r, self.similarity, self.p, self.distance)


def similarities(*methods: NeighborEmbedding, r: Array | None = None, p: float = 0.1) -> KernelCurves:
    """Return the kernels of methods as functions of the distance in the map.

    A kernel with a heavy tail reaches a small similarity p only at a large distance: to match the affinity of two
    points in the data, it needs them farther apart in the map.

    Parameters
    ----------
    *methods : estimators
        Methods with a kernel, such as SNE() or TSNE(); they need not be fitted.
    r : array-like of shape (m,), optional
        Ascending distances in the map; by default 400 distances from 0.02 to 5.
    p : float, default=0.1
        The similarity whose distances are found, as a fraction of k(0).

    Returns
    -------
    curves : KernelCurves

    Examples
    --------
    >>> from equipoise import SNE, TSNE, similarities
    >>> curves = similarities(SNE(), TSNE(), p=0.1)
    >>> round(curves.distance["SNE()"], 2), round(curves.distance["TSNE()"], 2)  # √log 10 and 3
    (1.52, 3.0)
    """
    _check_methods(methods, "similarities")
    if not (is_positive(p) and p < 1):
        raise ValueError(f"p must be a number above 0 and below 1, got {p!r}")
    r = np.linspace(0.02, 5, 400) if r is None else _check_distances(r)
    if (np.diff(r) <= 0).any():
        raise ValueError("r must contain ascending distances; sort them and remove duplicates")
    curves = {}
    for method in methods:
        kernel = method.output_kernel()
        curves[_name(method)] = kernel.value(r**2) / kernel.value(np.zeros(1))
    return KernelCurves(r, curves, float(p), {name: _crossing(r, k, p) for name, k in curves.items()})


def _crossing(r: Array, k: Array, p: float) -> float:
    """Return the distance at which a decreasing k crosses p, by interpolation of log k; NaN if there is none."""
    if not k.min() <= p <= k.max():
        return float("nan")
    with np.errstate(divide="ignore"):
        return float(np.interp(-np.log(p), -np.log(k), r))


def _check_methods(methods: Any, function: str) -> None:
    """Raise unless `methods` contains at least one method, and all have a kernel; `function` is named in the error."""
    if not methods:
        raise ValueError(f"{function}() needs at least one method, such as TSNE()")
    for method in methods:
        if not isinstance(method, Embedding):
            raise TypeError(f"{function}() needs methods with a kernel, such as TSNE(), got {method!r}")


def _check_distances(r: Any) -> Array:
    """Return distances (m,) in float64; raise ValueError unless they are finite and at least 0."""
    try:
        r = np.asarray(r, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"r must be an array of distances: {error}") from error
    if r.ndim != 1 or not r.size:
        raise ValueError(f"r must be an array (m,) with at least one distance, got shape {r.shape}")
    if (bad := ~(np.isfinite(r) & (r >= 0))).any():
        i = int(bad.argmax())
        raise ValueError(f"r must contain finite distances >= 0, got r[{i}] = {r[i]:g}")
    return r


def _name(method: NeighborEmbedding) -> str:
    return " ".join(str(method).split())
