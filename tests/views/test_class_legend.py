"""The legend of classes that mix in a map."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.views.class_legend import needs_legend
from equipoise.views.column import read_column

rng = np.random.default_rng(0)
Y = rng.normal(size=(400, 2))
RANDOM = rng.choice(["ctrl", "mock", "$stim$"], 400)
SIDES = np.where(Y[:, 0] < 0, "left", "right")


@pytest.mark.parametrize(
    ("color", "expected"),
    [
        (RANDOM, True),
        (SIDES, False),
        (np.where(rng.random(400) < 0.1, "rare", "common"), True),  # 82 % of neighbours agree by chance
        (rng.choice([f"class {i}" for i in range(30)], 400), True),  # classes of one colour have different marks
        (np.arange(400) % 31, False),  # too many for a legend
        (np.full(400, "one"), False),
        (Y[:, 0], False),
    ],
    ids=["random", "sides", "rare", "marked", "many", "one", "numbers"],
)
def test_legend_is_needed_where_classes_mix(color, expected):
    assert needs_legend(Y, read_column(color, 400, "color")) is expected


def test_legend_replaces_names_and_has_the_colors_of_the_points():
    color = RANDOM.astype(object)
    color[0] = None
    axes = eq.plot(Y, color).axes[0]
    legend = axes.get_legend()
    assert [text.get_text().strip() for text in legend.get_texts()] == ["$stim$", "ctrl", "mock", "no class"]
    assert not axes.texts
    drawn = np.vstack([collection.get_facecolors()[:, :3] for collection in axes.collections])
    for handle in legend.legend_handles:
        assert (np.abs(drawn - np.array(handle.get_color())).max(axis=1) < 1e-6).any()
    separate = eq.plot(Y, SIDES).axes[0]
    assert separate.get_legend() is None and {text.get_text() for text in separate.texts} == {"left", "right"}


def test_legend_of_one_point_or_of_duplicates():
    assert not needs_legend(Y[:1], read_column(["a"], 1, "color"))
    twice = np.repeat(Y[:50], 2, axis=0)
    assert needs_legend(twice, read_column(np.tile(["a", "b"], 50), 100, "color"))


def test_classes_of_one_colour_have_different_marks_in_the_picture_and_its_legend():
    axes = eq.plot(Y, np.array([f"class {i % 25}" for i in range(400)])).axes[0]
    handles = axes.get_legend().legend_handles
    pairs = {(str(handle.get_color()), handle.get_marker()) for handle in handles}
    assert len(pairs) == len(handles) == 25 and len({marker for _, marker in pairs}) >= 3
    assert sum(len(collection.get_offsets()) for collection in axes.collections) == 400
    assert len(axes.collections) == len({marker for _, marker in pairs})
