"""Neighbour recall and the 1-NN error."""

import numpy as np
import pytest

from equipoise.evaluate import neighbor_recall, one_nn_error


@pytest.mark.parametrize("k", [1, 10, 199])
def test_recall_of_a_similar_map_is_one(k, rng):
    X = rng.normal(size=(200, 3))
    assert neighbor_recall(X, X, k) == 1.0
    assert neighbor_recall(X, -2.5 * X + 1, k) == 1.0  # scaled, reflected and shifted


@pytest.mark.parametrize("k", [5, 50])
def test_recall_of_a_random_map_is_at_chance_level(k, rng):
    recall = neighbor_recall(rng.normal(size=(500, 5)), rng.normal(size=(500, 2)), k)
    assert abs(recall - k / 499) < 0.02


def test_recall_matches_hand_computed_value():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])  # nearest: 1, 0, 1, 2
    Y = np.array([[0.0], [1.0], [9.0], [7.0]])  # nearest: 1, 0, 3, 2
    assert neighbor_recall(X, Y, 1) == 0.75


def test_recall_with_all_neighbours_is_one(rng):
    assert neighbor_recall(rng.normal(size=(20, 4)), rng.normal(size=(20, 2)), 19) == 1.0


@pytest.mark.parametrize("k", [0, -1, 30])
def test_k_out_of_range_raises(k, rng):
    X = rng.normal(size=(30, 2))
    with pytest.raises(ValueError, match=rf"k must be between 1 and n_samples - 1 = 29, got {k}"):
        neighbor_recall(X, X, k)


def test_map_of_different_length_raises(rng):
    with pytest.raises(ValueError):
        neighbor_recall(rng.normal(size=(30, 2)), rng.normal(size=(29, 2)), 5)


def test_one_nn_error_of_separated_classes_is_zero(rng):
    labels = np.repeat(["a", "b", "c"], 30)
    Y = rng.normal(size=(90, 2)) + 100 * np.repeat(np.eye(3, 2), 30, axis=0)
    assert one_nn_error(Y, labels) == 0.0


def test_one_nn_error_of_random_classes_is_at_chance_level(rng):
    error = one_nn_error(rng.normal(size=(1000, 2)), rng.integers(0, 4, size=1000))
    assert abs(error - 0.75) < 0.05


def test_one_nn_error_is_the_fraction_of_misplaced_points(rng):
    labels = np.repeat([0, 1], 100)
    Y = rng.normal(size=(200, 2)) + 1e5 * (labels == 0)[:, None]
    Y[:4] = 1000 * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])  # four points of class 0 around class 1
    np.testing.assert_allclose(one_nn_error(Y, labels), 4 / 200)


def test_one_nn_error_is_deterministic(rng):
    Y, labels = rng.normal(size=(100, 2)), rng.integers(0, 2, size=100)
    assert one_nn_error(Y, labels) == one_nn_error(Y, labels)


def test_one_nn_error_uses_fewer_folds_for_small_classes(rng):
    labels = np.repeat([0, 1], [50, 3])
    Y = rng.normal(size=(53, 2)) + 100 * labels[:, None]
    assert one_nn_error(Y, labels) == 0.0  # warnings are errors here: three folds, not ten


def test_k_may_be_the_number_of_training_points():
    with pytest.warns(UserWarning, match="1 class has a single point, which cannot be classified") as found:
        error = one_nn_error([[0.0], [1.0], [9.0]], ["a", "a", "b"])  # the largest of two folds leaves one point
    assert error >= 0 and len(found) == 1
