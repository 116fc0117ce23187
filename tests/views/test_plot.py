"""Figures drawn by plot(): positions, colours, names, densities, images and forces."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

import equipoise as eq
from equipoise.views import plot as plot_module
from equipoise.views.coloring import assign_colors, color_limits, color_ramp
from equipoise.views.column import Classes, Numbers, read_column
from equipoise.views.labels import class_centers
from equipoise.views.spacing import spaced_rows
from equipoise.views.style import DARK, LIGHT

# G. M. Machado, M. M. Oliveira & L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", 2009, table 1, severity 1: matrices that act on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colors):
    c = np.array([to_rgb(color) for color in colors])
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear sRGB, white D65."""
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    x = rgb @ to_xyz.T / np.array([0.95047, 1, 1.08883])
    f = np.where(x > (6 / 29) ** 3, np.cbrt(x), x / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def dots(figure):
    """Return positions and colours of the dots of a figure, sorted by position."""
    (drawn,) = figure.axes[0].collections
    places, colors = np.asarray(drawn.get_offsets()), drawn.get_facecolors()[:, :3]
    order = np.lexsort(places.T)
    return places[order], [to_hex(color) for color in np.broadcast_to(colors, (len(places), 3))[order]]


def boxes(figure):
    """Return the bounding boxes of the class names in pixels."""
    figure.canvas.draw()
    return {text.get_text(): text.get_window_extent() for text in figure.axes[0].texts}


def overlap(a, b):
    return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1


@pytest.fixture
def groups(rng):
    """Three groups of fifty points."""
    number = np.arange(150) % 3
    return rng.normal(size=(150, 2)) + 10 * np.array([[0, 0], [1, 0], [0, 1]])[number], number


# Colours --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("theme", "min_distance"), [(LIGHT, 17), (DARK, 15)], ids=["light", "dark"])
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_palette_is_distinguishable_with_colour_blindness(theme, min_distance, blindness):
    seen = lab(np.clip(linear(theme.colors) @ np.array(BLINDNESS[blindness]).T, 0, 1))
    assert len(seen) == 10
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > min_distance


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_no_class_is_grey_like_missing_values(theme):
    a, b = lab(linear(theme.colors))[:, 1:].T
    assert np.hypot(a, b).min() > 20  # greys have about 0


def test_colours_contrast_with_the_dark_background():
    luminance = linear([*DARK.colors, *color_ramp(DARK), DARK.background]) @ [0.2126, 0.7152, 0.0722]
    contrast = (luminance + 0.05) / (luminance[-1] + 0.05)
    assert contrast[:10].min() > 3 and contrast[10:-1].min() > 1.5


def test_read_column_detects_classes_and_numbers():
    kinds = {
        "few integers": (np.arange(30) % 20, Classes),
        "many integers": (np.arange(30), Numbers),
        "floats": (np.arange(30) % 3 / 1.0, Numbers),
        "text": (np.array(["b", "a"] * 15), Classes),
        "booleans": (np.arange(30) > 4, Classes),
        "categories": (pd.Series(["x", "y", None] * 10, dtype="category"), Classes),
        "nullable": (pd.Series([1, 2, None] * 10, dtype="Int64"), Classes),
        "objects": (np.array([1.5, None, 2] * 10, dtype=object), Numbers),
        "identifiers": (2**60 + np.arange(30), Classes),
        "dates": (np.array(["2020-01-01", "NaT", "2021-05-06"] * 10, dtype="datetime64[D]"), Classes),
    }
    for name, (values, kind) in kinds.items():
        assert isinstance(read_column(values, 30, "color"), kind), name


def test_read_column_sorts_names_naturally_and_marks_missing_values():
    column = read_column(np.array(["10", "9", None, "2"], dtype=object), 4, "color")
    assert column.names == ("2", "9", "10") and column.codes.tolist() == [2, 1, -1, 0]
    assert read_column(["kind 10", "kind 9", "a 1"], 3, "color").names == ("a 1", "kind 9", "kind 10")
    column = read_column(pd.Series([3, None, 1], dtype="Int64", name="age"), 3, "color")
    assert column.name == "age" and column.names == ("1", "3") and column.codes.tolist() == [1, -1, 0]
    named = read_column([1, 0, 1], 3, "color", names=["no", "yes"])
    assert named.names == ("no", "yes") and named.codes.tolist() == [1, 0, 1]


def test_repeated_colours_are_far_apart_on_the_map():
    angle = 2 * np.pi * np.arange(25) / 25
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    found = assign_colors(Classes("color", np.arange(25, dtype=np.int32), tuple(map(str, range(25)))), places)
    assert found[:10].tolist() == list(range(10))
    same = [
        np.linalg.norm(places[i] - places[j]) for i, j in itertools.combinations(range(25), 2) if found[i] == found[j]
    ]
    assert min(same) > 0.7  # neighbours on the circle are 0.25 apart


def test_dots_have_map_positions_and_class_colours(groups):
    Y, number = groups
    figure = eq.plot(Y, np.array(["cat", "dog", "owl"])[number], title="animals")
    places, colors = dots(figure)
    order = np.lexsort(Y.T)
    np.testing.assert_allclose(places, Y[order])
    assert colors == [LIGHT.colors[i] for i in number[order]]
    assert figure.axes[0].get_title() == "animals" and set(boxes(figure)) == {"cat", "dog", "owl"}
    assert figure.axes[0].get_aspect() == 1


def test_numeric_colours_follow_the_ramp_and_missing_values_are_grey(groups):
    Y, _ = groups
    values = np.linspace(0, 1, 150)
    values[7] = np.nan
    figure = eq.plot(Y, pd.Series(values, name="depth"), dark=True)
    colors = dict(zip(map(tuple, dots(figure)[0]), dots(figure)[1], strict=True))
    assert colors[tuple(Y[0])] == color_ramp(DARK)[0] and colors[tuple(Y[149])] == color_ramp(DARK)[-1]
    assert colors[tuple(Y[7])] == DARK.missing
    bar = figure.axes[1]
    assert bar.get_ylabel() == "depth" and bar.get_ylim() == pytest.approx(
        color_limits(read_column(values, 150, "color"))
    )
    assert to_hex(figure.get_facecolor()) == DARK.background


# Names ----------------------------------------------------------------------------------------------------------------


def test_class_name_lies_on_the_largest_island(rng):
    left, right = rng.normal(size=(300, 2)), rng.normal(size=(200, 2)) + np.array([40, 0])
    Y = np.concatenate([left, right])
    (center,) = class_centers(Y, Classes("color", np.zeros(500, np.int32), ("two islands",)))
    assert np.linalg.norm(center) < 1.0
    figure = eq.plot(Y, np.full(500, "two islands"))
    box = boxes(figure)["two islands"]
    pixels = figure.axes[0].transData.transform(left)
    assert pixels[:, 0].min() - box.width < box.x0 and box.x1 < pixels[:, 0].max() + box.width


def test_class_name_lies_next_to_its_points(rng):
    """A name covers at most a quarter of the dots that it would cover at the centre of its class."""
    number = np.arange(600) % 3
    Y = rng.normal(size=(600, 2)) + 10 * np.array([[0, 0], [1, 0], [0, 1]])[number]
    figure = eq.plot(Y, np.array(["cats", "dogs", "owls"])[number])
    axes = figure.axes[0]
    pixels = axes.transData.transform(Y)
    places = axes.transData.transform(class_centers(Y, Classes("color", number.astype(np.int32), ("", "", ""))))

    def under(middle, box):
        return int((np.abs(pixels - middle) < np.array([box.width, box.height]) / 2).all(axis=1).sum())

    for i, (name, box) in enumerate(boxes(figure).items()):
        middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
        assert under(middle, box) <= 0.25 * under(places[i], box), name
        nearest = int(np.linalg.norm(pixels - middle, axis=1).argmin())
        assert number[nearest] == ["cats", "dogs", "owls"].index(name)


def test_title_is_close_above_a_wide_map(rng):
    figure = eq.plot(rng.normal(size=(100, 2)) * [8, 1], title="wide")
    title, frame = figure.axes[0].title.get_window_extent(), figure.axes[0].get_window_extent()
    assert 0 < title.y0 - frame.y1 < title.height
    assert figure.bbox.y1 - title.y1 < 2 * title.height


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_reference_map_is_drawn_in_grey_below_new_points(d, rng):
    old, new = rng.normal(size=(60, d)), rng.normal(size=(20, d))
    figure = eq.plot(new, over=old)
    beneath, above = figure.axes[0].collections[-2:]
    assert len(beneath.get_offsets()) == 60 and len(above.get_offsets()) == 20
    # In 3-D the dots fade with depth.
    assert {to_hex(color) for color in beneath.get_facecolors()} == {LIGHT.missing} or d == 3
    axes = figure.axes[0]
    note = axes.texts[0].get_text() if d == 3 else axes.get_xlabel()
    assert "grey: the 60 points of the original map" in note


def test_over_must_have_the_same_dimension(rng):
    with pytest.raises(ValueError, match="Y is 2-D, but the map passed as `over` is 3-D"):
        eq.plot(rng.normal(size=(5, 2)), over=rng.normal(size=(9, 3)))


def texts_below(figure, names=()):
    """Return the texts of a map that are not among `names`: its note."""
    axes = figure.axes[0]
    return [text for text in (axes.get_xlabel(), *(t.get_text() for t in axes.texts)) if text and text not in names]


@pytest.mark.parametrize("d", [2, 3])
def test_note_is_written_once(d, rng):
    names = [f"the long name of class {i}" for i in range(150)]
    figure = eq.plot(0.1 * rng.normal(size=(150, d)), names, over=rng.normal(size=(9, d)))
    (note,) = texts_below(figure, names)
    assert note.startswith("grey: the 9 points of the original map; ") and note.endswith("class names did not fit")


@pytest.mark.parametrize("d", [1, 2, 3])
def test_class_names_never_overlap_and_stay_inside_the_figure(d, rng):
    number = np.arange(1200) % 40
    centers = 3 * rng.normal(size=(40, d))  # crowded
    figure = eq.plot(centers[number] + rng.normal(size=(1200, d)), [f"the class {i}" for i in number])
    found = boxes(figure)
    assert not any(overlap(a, b) for a, b in itertools.combinations(found.values(), 2))
    frame = figure.bbox
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and box.y0 <= frame.y1 for box in found.values())
    names = {f"the class {i}" for i in range(40)}
    left_out = len(names - set(found))
    note = " ".join(texts_below(figure, names))
    assert (f"{left_out} of 40 class names did not fit" in note) == (left_out > 0)
    assert len(found) > 15


def test_class_names_are_plain_text_with_a_halo(groups):
    Y, number = groups
    figure = eq.plot(Y, number, names=["$x_", "a" * 50, "b\n c"], dark=True)
    assert set(boxes(figure)) == {"$x_", "a" * 27 + "…", "b c"}
    for text in figure.axes[0].texts:
        (halo,) = text.get_path_effects()
        assert halo._gc["foreground"] == DARK.background and text.get_color() == DARK.text


# Shapes of maps -------------------------------------------------------------------------------------------------------


def test_axes_are_equal_in_three_dimensions(rng):
    Y = rng.normal(size=(60, 3)) * [10, 3, 1]
    axes = eq.plot(Y).axes[0]
    sides = np.array([np.ptp(limit) for limit in (axes.get_xlim(), axes.get_ylim(), axes.get_zlim())])
    box = np.array(axes._box_aspect)
    np.testing.assert_allclose(box / box[0], sides / sides[0], rtol=1e-6)
    np.testing.assert_allclose(np.sort(axes.collections[0]._offsets3d[0]), np.sort(Y[:, 0]))


def test_1d_maps_are_strips_and_spheres_use_mollweide_axes(rng):
    strip = eq.plot(rng.normal(size=(50, 1)))
    assert strip.get_figwidth() > 2 * strip.get_figheight() and "heights are random" in strip.axes[0].get_xlabel()
    sphere = rng.normal(size=(50, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    assert eq.plot(sphere).axes[0].name == "mollweide"
    assert "5 dimensions" in eq.plot(rng.normal(size=(50, 5))).axes[0].get_xlabel()


def test_plot_accepts_existing_axes_and_fitted_methods(groups):
    Y, number = groups
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert eq.plot(Y, number, ax=right) is figure
    assert not left.collections and len(right.collections) == 1 and right.get_aspect() == 1
    method = eq.PCA(n_components=2).fit(Y)
    np.testing.assert_allclose(dots(eq.plot(method))[0], method.embedding_[np.lexsort(method.embedding_.T)])


def test_many_points_are_drawn_as_a_density_image(rng, monkeypatch):
    monkeypatch.setattr(plot_module, "MAX_DOTS", 2000)
    crowd, few = rng.normal(size=(2000, 2)) * 0.3, rng.uniform(-4, 4, size=(400, 2)) + np.array([10, 0])
    figure = eq.plot(np.concatenate([crowd, few]), np.repeat([0, 1], [2000, 400]))
    axes = figure.axes[0]
    (image,) = axes.images
    assert not axes.collections
    picture, (x0, x1, y0, y1) = image.get_array(), image.get_extent()

    def at(x, y, r):
        """Return the pixels around a position of the map."""
        h, w = picture.shape[:2]
        i, j, s = int((y - y0) / (y1 - y0) * h), int((x - x0) / (x1 - x0) * w), int(r / (x1 - x0) * w)
        return picture[i - s : i + s, j - s : j + s].reshape(-1, 4)

    assert at(0, 0, 0.2)[:, 3].mean() > 3 * at(10, 0, 3)[:, 3].mean() > 0
    seen = at(0, 0, 0.2)
    assert to_hex(seen[seen[:, 3].argmax(), :3]) == LIGHT.colors[0]
    assert picture[0, 0, 3] == 0


# Images and forces ----------------------------------------------------------------------------------------------------


def test_images_are_centred_on_their_points_and_do_not_overlap(rng):
    Y = rng.uniform(0, 100, size=(400, 2))
    images = rng.integers(0, 256, size=(400, 6, 4), dtype=np.uint8)
    figure = eq.plot(Y, np.arange(400) % 3, images=images)
    shown = figure.axes[0].images
    rows = []
    for image in shown:
        x0, x1, y0, y1 = image.get_extent()
        row = int(((Y - [(x0 + x1) / 2, (y0 + y1) / 2]) ** 2).sum(axis=1).argmin())
        np.testing.assert_array_equal(image.get_array(), images[row])
        assert (y1 - y0) / (x1 - x0) == pytest.approx(1.5)
        rows.append(row)
    assert len(set(rows)) == len(shown) == 219
    extents = np.array([image.get_extent() for image in shown])
    for a, b in itertools.combinations(extents, 2):
        assert a[1] <= b[0] + 1e-9 or b[1] <= a[0] + 1e-9 or a[3] <= b[2] + 1e-9 or b[3] <= a[2] + 1e-9
    (frames,) = figure.axes[0].collections
    assert [to_hex(color) for color in frames.get_edgecolors()] == [LIGHT.colors[row % 3] for row in rows]
    fewer = eq.plot(Y, images=images, size=60).axes[0].images
    assert len(fewer) < len(shown) / 3


def test_spaced_rows_are_a_maximal_set_without_overlap(rng):
    points = rng.normal(size=(800, 2))
    kept = spaced_rows(points, 0.3)
    gaps = np.abs(points[:, None] - points[None, kept]).max(axis=2)
    assert (gaps.min(axis=1) < 0.3).all()  # any other point would overlap a kept one
    assert all(np.abs(points[i] - points[j]).max() >= 0.3 for i, j in itertools.combinations(kept, 2))


def test_arrows_show_both_forces_on_one_scale(rng):
    X = rng.normal(size=(80, 5))
    problem = eq.TSNE(perplexity=8, random_state=0).problem(X)
    Y = problem.optimize(60).astype(np.float64)
    figure = eq.plot(Y, forces=problem)
    pull, push = (found for found in figure.axes[0].collections if found.get_gid())
    assert [pull.get_gid(), push.get_gid()] == ["attraction", "repulsion"]
    rows = [int(((Y - place) ** 2).sum(axis=1).argmin()) for place in pull.XY]
    assert 10 < len(rows) < 80
    np.testing.assert_allclose(pull.XY, Y[rows])
    for arrows, force in ((pull, problem.attraction(Y)), (push, problem.repulsion(Y))):
        np.testing.assert_allclose(np.column_stack([arrows.U, arrows.V]), force[rows])
    assert pull.scale == push.scale and pull.angles == "xy" and pull.scale_units == "xy"
    longest = np.linalg.norm(np.column_stack([push.U, push.V]), axis=1).max() / push.scale
    assert 0.03 < longest / np.ptp(Y, axis=0).max() < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"color": "kind"}, r"color='kind' is text; pass 4 values, one per point, such as the column table\['kind'\]"),
        ({"color": [1, 2]}, r"color must have shape \(4,\), one value per point, got shape \(2,\)"),
        ({"names": ["a"]}, "`names` requires `color`; pass the class of each point as `color`, or omit `names`"),
        (
            {"color": list("abcd"), "names": ["a"]},
            "color must contain integers if `names` is given, but contains other values; omit `names`",
        ),
        ({"color": [0, 1, 2, 0], "names": ["a", "b"]}, r"row 2 of color is 2, but .* 0 to len\(names\) - 1 = 1"),
        ({"images": np.zeros((4, 9))}, r"images must have shape \(4, height, width\) or .* got \(4, 9\); reshape"),
        ({"images": np.full((4, 2, 2), 16.0)}, "images must be uint8 or between 0 and 1, got float64 from 16"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        eq.plot(np.zeros((4, 2)), **arguments)


def test_invalid_maps_raise(rng):
    with pytest.raises(ValueError, match="Y contains NaN at row 1, column 0"):
        eq.plot([[0.0, 1.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match=r"Y must be a map of shape \(n, d\)"):
        eq.plot(np.zeros(4))
    Y = rng.normal(size=(30, 3))
    with pytest.raises(ValueError, match="`forces` can be drawn only on a 2-D map, but Y is 3-D"):
        eq.plot(Y, forces=eq.TSNE(perplexity=5).problem(Y))
    with pytest.raises(ValueError, match="images can be drawn only on flat maps"):
        eq.plot(Y, images=np.zeros((30, 2, 2)))
    with pytest.raises(ValueError, match="needs axes with projection='3d', but ax has 'rectilinear'"):
        eq.plot(Y, ax=Figure().subplots())
    assert eq.plot([[1.0, 2.0]]).axes[0].get_xlim() == pytest.approx((0.96, 1.04))


def test_size_must_be_a_positive_number(rng):
    with pytest.raises(ValueError, match="size must be a positive number up to 1000, in points of 1/72 inch, got 'a'"):
        eq.plot(rng.normal(size=(9, 2)), size="a")
    with pytest.raises(ValueError, match="size must be a positive number up to 1000"):
        eq.plot(rng.normal(size=(9, 2)), size=1e30)


def test_title_may_be_none(rng):
    assert eq.plot(rng.normal(size=(9, 2)), title=None).axes[0].get_title() == ""
