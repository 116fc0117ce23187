"""Kernel PCA: what PCA does in the feature space of a kernel instead of the space of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import Array, Matrix
from ..affinities.feature_kernels import DataKernel, FeatureKernel, check_feature_kernel, is_linear, kernel_input
from ..arrays.namespace import to_numpy
from ..arrays.to_device import to_device
from ..linalg.gram import Factor, Inner
from ..linalg.nystrom import Landmarks
from ..memory import EIGEN_PAIR, require_memory_for_pairs
from .closed_form import ClassicalEmbedding, Model


class KernelPCA(ClassicalEmbedding):
    """Base class of PCA with the parameters `kernel` and `gamma`; see `PCA`."""

    kernel: DataKernel
    gamma: float | None
    _landmarks: Landmarks | None
    _uses_landmarks: Callable[[int], bool]
    _from_landmarks: Callable[..., Model]
    _gram_model: Callable[..., Model]
    _place_by_gram: Callable[[Any], Array]

    def check_parameters(self) -> None:
        super().check_parameters()
        check_feature_kernel(self.kernel, self.gamma)

    def _kernel_model(self, X: Any, rng: np.random.RandomState) -> Model:
        """Return the model of kernel PCA, whose Gram matrix is the centred kernel matrix C K C."""
        data, device = kernel_input(X, self.kernel), self._device(X)
        self._record_features(X, data)
        self._check_dimension(data.n, f"n_samples={data.n}")
        with_landmarks, features = self._uses_landmarks(data.n), FeatureKernel(data, self.kernel, self.gamma)
        if with_landmarks:
            model = self._from_landmarks(data, features.squared_to_all, rng, device)
            assert self._landmarks is not None
            self._total = Factor(self._landmarks.F).trace()
            return model
        require_memory_for_pairs(
            data.n, EIGEN_PAIR, "PCA with a kernel", "use fewer rows or n_landmarks=500"
        )  # K, d² and B
        # −2 K contains the squared distances in the feature space, up to terms that the centring removes.
        gram = Inner(to_device(-2 * features.matrix(), device))
        self._total = float(to_numpy(gram.B).trace())
        return self._gram_model(data, gram)

    def _place_by_kernel(self, X: Matrix) -> Array:
        """Return the positions of new rows in the map of the feature space."""
        features = FeatureKernel(self._data, self.kernel, self.gamma)
        if self._landmarks is None:
            return self._place_by_gram(-2 * features.rows(X))
        d2 = np.ascontiguousarray(features.squared_from_new(X)[:, self._landmarks.chosen])
        return self._place_by_gram(self._landmarks.coordinates(d2))

    def _bytes_per_new_row(self) -> float:
        return 0.0 if is_linear(self.kernel) else 32.0 * self._data.n

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
