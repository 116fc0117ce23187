"""Creates, arranges and updates the widgets of the page; app.py connects them with the runs."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from ...data import Dataset
from ...views.style import COLORS
from ..data_sources import DataSources, format_size
from ..session.method_run import MethodRun
from ..session.metrics import METRICS
from ..session.parameters import METHODS, OPTIMIZERS
from ..session.worker import Shot
from .controls import Changed, Sliders
from .energy_plot import EnergyPlot, small_figure
from .map_plots import Maps
from .panel import ATTRACTION, CURVES, REPULSION
from .table_form import TableForm
from .trust_colors import TrustColors

SPEEDS = ("1", "2", "5", "10", "25")
MAP_NAMES = ("first map", "second map")
MAX_NAMED = 12  # classes named in the legend
BUSY = {
    "background": "var(--background)", "border": "1px solid var(--line)", "border-radius": "6px", "padding": "8px 14px",
    "font-size": "15px",
}  # fmt: skip
BAR = '<progress style="display:block;width:100%;margin-top:6px" max="1" value="{share:.3f}"></progress>'
HINT = "Click a point to see the forces on it."
COPY_SCRIPT = "navigator.clipboard?.writeText({text}).then(() => {{ {button}.label = 'Copied' }}, () => {{}}); \
setTimeout(() => {{ {button}.label = '{label}' }}, 1500)"
LINK_SCRIPT = "if (cb_obj.value !== '') { history.replaceState(null, '', cb_obj.value); " + (
    "navigator.clipboard?.writeText(cb_obj.value).then(() => { button.label = 'Link copied' }, () => {}); "
    "setTimeout(() => { button.label = 'Share link' }, 1500) }"
)
DOWNLOAD_SCRIPT = """
const link = document.createElement("a")
link.href = `export/${kind}?` + new URLSearchParams({session})
link.download = ""
link.click()
"""


class Layout:
    """The widgets of a page; `updating` is True while the studio itself changes them."""

    def __init__(self, session: str, tables: DataSources, changed: Changed):
        from bokeh import models

        self.updating = False
        self._tables = tables
        self._opened: set[str] = set()  # data sets opened on this page, which lists no uploads of other pages
        self.sliders = Sliders(changed)
        self.maps = Maps()
        self._make_controls(models, session)
        self._make_transport(models)
        self._make_side(models, session)
        self.facts = models.Div(name="facts", render_as_text=True, text="")
        self.busy = models.Div(name="busy", text="", disable_math=True, visible=False, styles=BUSY)
        self.message = models.Div(
            name="message", render_as_text=True, text="", styles={"color": "var(--error)", "font-weight": "600"},
            sizing_mode="stretch_width",
        )  # fmt: skip
        upload = files(__package__).joinpath("upload.js").read_text(encoding="utf-8")
        facts = {"session": session, "limit": tables.limit, "limit_text": format_size(tables.limit)}
        self.upload.js_on_click(
            models.CustomJS(args={"message": self.message, "inbox": self.inbox, **facts}, code=upload)
        )
        maps = [root for panel in self.maps.panels for root in (panel.title, panel.plot)]
        self.roots = (self.facts, self.message, self.busy, self.controls, *maps, self.transport, self.side)

    def _make_controls(self, models: Any, session: str) -> None:
        wide = {"sizing_mode": "stretch_width"}
        self.data = models.Select(name="data", title="Data", options=self._tables.names(), **wide)
        self.inbox = models.ColumnDataSource(name="inbox")  # name of an uploaded table
        self.upload = models.Button(name="upload", label="Upload a table …", **wide)
        self.columns = models.Button(name="columns", label="Columns and scaling …", visible=False, **wide)
        self.form = TableForm()
        self.which = models.RadioButtonGroup(
            name="which", labels=["First map", "Second map"], active=0, visible=False, **wide
        )
        methods = [(name, choice.title) for name, choice in METHODS.items()]
        self.method = models.Select(name="method", title="Method", options=methods, value="tsne", **wide)
        self.metric = models.Select(name="metric", title="Metric", options=[], **wide)
        optimizers = [(name, choice.title) for name, choice in OPTIMIZERS.items()]
        self.optimizer = models.Select(
            name="optimizer", title="Optimiser", options=optimizers, value="momentum", **wide
        )
        self.seed = models.Spinner(name="seed", title="Seed", low=0, high=2**31 - 1, step=1, value=0, width=110)
        self.compare = models.Toggle(name="compare", label="Compare two runs", **wide)
        self.controls = models.Column(
            name="controls",
            children=[
                self.data, self.upload, self.columns, self.compare, self.which, self.method, self.metric,
                self.sliders.column, self.optimizer, self.seed, self.maps.holder,
                models.Div(visible=False, tags=[self.inbox, *self.form.models]),
            ],
            **wide,
        )  # fmt: skip

    def _make_transport(self, models: Any) -> None:
        self.play = models.Button(name="play", label="Play", button_type="primary", width=84)
        self.step = models.Button(name="step", label="Step", width=64)
        self.reset = models.Button(name="reset", label="Reset", width=64)
        self.speed = models.Select(
            name="speed", options=[(speed, f"{speed} per frame") for speed in SPEEDS], value="1", width=122
        )
        self.history = models.Slider(
            name="history", title="iteration", start=0, end=1, step=1, value=0, sizing_mode="stretch_width",
            margin=(0, 14, 0, 14), format="0", min_width=190,
        )  # fmt: skip
        self.transport = models.Row(
            name="transport",
            children=[self.play, self.step, self.reset, self.speed, self.history],
            sizing_mode="stretch_width",
            styles={"align-items": "center", "flex-wrap": "wrap", "row-gap": "6px"},  # wraps on narrow pages
        )

    def _make_side(self, models: Any, session: str) -> None:
        wide = {"sizing_mode": "stretch_width"}
        self.curves = tuple(
            models.ColumnDataSource(name=f"curve {name}", data={"iteration": [0, 1], "loss": [0, 0]}) for name in "ab"
        )
        self.loss: Any = small_figure("loss", "Loss")
        lines = [
            self.loss.line("iteration", "loss", source=source, line_color=color, line_width=2)
            for source, color in zip(self.curves, CURVES.values(), strict=True)
        ]
        self._lines = lines
        for line in lines:
            line.visible = False  # its initial data only set the range of the axes
        self.energy = EnergyPlot()
        self.color = models.Select(
            name="color", title="Colour", options=[("class", "class"), ("trust", "trust per point")],
            value="class", **wide,
        )  # fmt: skip
        self.legend = models.Div(name="legend", text="", disable_math=True, **wide)
        self.forces = models.Div(name="forces", text=HINT, disable_math=True, styles={"color": "var(--muted)"}, **wide)
        self.share = models.Button(name="share", label="Share link", **wide)
        self.link = models.TextInput(name="link", visible=False, **wide)
        self.link.js_on_change("value", models.CustomJS(args={"button": self.share}, code=LINK_SCRIPT))
        self.code = models.PreText(
            name="code", text="", styles={
                "font-size": "11px", "max-height": "190px", "overflow": "auto", "background": "var(--raised)",
                "padding": "6px 8px", "border-radius": "4px", "width": "calc(100% - 10px)", "box-sizing": "border-box",
            }, **wide,
        )  # fmt: skip
        copy = models.Button(name="copy", label="Copy Python code", **wide)
        code = COPY_SCRIPT.format(text="code.text", button="button", label=copy.label)
        copy.js_on_click(models.CustomJS(args={"code": self.code, "button": copy}, code=code))
        saves = []
        self.saved = models.Div(name="saved", text="", visible=False, styles={"color": "var(--muted)"}, **wide)
        for kind in ("csv", "png", "html"):
            button = models.Button(name=f"save {kind}", label=kind.upper(), **wide)
            button.js_on_click(models.CustomJS(args={"session": session, "kind": kind}, code=DOWNLOAD_SCRIPT))
            saves.append(button)
        self.side = models.Column(
            name="side",
            children=[
                self.loss, self.energy.plot, self.color, self.legend, self.forces, self.saved,
                models.Row(children=saves, **wide), self.share, self.link, copy, self.code,
            ],
            **wide,
        )  # fmt: skip

    # Updates by the studio

    def announce(self, name: str, uploaded: str | None = None) -> None:
        """Update the menu of data sets, also with the file `uploaded`, and select the data set `name`."""
        self.updating = True
        self._opened |= {name} if uploaded is None else {name, uploaded}
        self.data.options = self._tables.names(self._opened)
        self.data.value = name
        self.updating = False

    def load(self, dataset: Dataset, runs: int, active: int) -> None:
        """Prepare the page for another data set with one or two runs, of which the sliders control run `active`."""
        self.updating = True
        try:
            self.color.value = "class"
            self.compare.active = runs > 1
            self.history.value, self.history.end = 0, 1
        finally:
            self.updating = False
        self.maps.load(dataset)
        self.show_second(runs > 1, active)
        self.color_by_class(dataset)

    def show_second(self, wanted: bool, active: int) -> None:
        """If `wanted`, show the buttons that choose between two maps, and select the map `active`, 0 or 1.

        Otherwise hide the buttons. In both cases, the loss curve of the second map is hidden until `show_curves` draws
        it.
        """
        self.which.visible = wanted
        self._lines[1].visible = False
        self.updating = True
        self.which.active = active
        self.updating = False

    def show_run(self, run: MethodRun, active: int) -> None:
        """Set method, metric, optimiser, seed and sliders to the values of a run."""
        recipe, n = run.recipe, len(run.X)
        self.updating = True
        try:
            self.method.value, self.seed.value, self.which.active = recipe.method, recipe.seed, active
            self.optimizer.value = recipe.optimizer
            self.optimizer.visible, self.metric.visible = run.iterates, bool(run.metrics)
            self.metric.options = [(name, METRICS[name].title) for name in run.metrics]
            self.metric.value = run.metric
        finally:
            self.updating = False
        self.sliders.show(recipe.method, run.values, n, rate=float(max(n, 1)))

    def show_transport(self, is_needed: bool) -> None:
        """Show or hide the buttons and plots about iterations."""
        self.transport.visible = self.loss.visible = is_needed

    def show_curves(self, curves: list[list[tuple[int, float]]], active: int) -> None:
        """Draw the loss curves; if there are two, divide each by its first value, because their scales may differ.

        `active` is the map, 0 or 1, that the buttons below them save.
        """
        for source, curve in zip(self.curves, curves, strict=False):
            iteration, loss = np.array(curve, dtype=np.float64).reshape(-1, 2).T
            loss = loss if sum(map(bool, curves)) == 1 or not len(loss) else loss / (loss[0] or 1.0)
            keep = np.unique(np.linspace(0, len(loss) - 1, min(len(loss), 1000)).astype(int))
            source.data = {"iteration": iteration[keep], "loss": loss[keep]}
        for which, line in enumerate(self._lines):
            line.visible = which < len(curves) and bool(curves[which])
        self.loss.title.text = "Loss" if sum(map(bool, curves)) == 1 else "Loss, relative to its start"
        self.saved.text = f"Save the {MAP_NAMES[active]} as" if len(curves) > 1 else ""
        self.saved.visible = len(curves) > 1

    def show_titles(self, titles: list[str]) -> None:
        """Set the titles of the maps."""
        for panel, title in zip(self.maps.panels, titles, strict=False):
            panel.title.text = title

    def show_iteration(self, at: int, last: int) -> None:
        """Set the history slider to iteration `at` of `last`."""
        self.updating = True
        try:
            end = max(last, at, 1)
            self.history.end = max(end, self.history.end)  # keeps the value within the range at all times
            self.history.value = at
            self.history.end = end
        finally:
            self.updating = False

    def show_state(self, description: str, share: float | None, playing: bool, facts: str) -> None:
        """Show the current work over the map, Play or Pause on the button, and the line `facts` about the data.

        `description` names the current work and is empty if there is none. `share` is the fraction of it that is done,
        shown as a bar; None shows no bar.
        """
        self.busy.text = escape(description) + ("" if share is None else BAR.format(share=share))
        self.busy.visible = bool(description)
        self.facts.text = facts
        self.play.label = "Pause" if playing else "Play"
        self.play.button_type = "default" if playing else "primary"

    def show_color(self, value: str) -> None:
        """Select a value in the menu Colour: "class" or "trust"."""
        self.updating = True
        self.color.value = value
        self.updating = False

    def color_by_class(self, dataset: Dataset) -> None:
        """Colour the maps by class and show the legend."""
        self.maps.color_by_class(dataset)
        named = dataset.classes[:MAX_NAMED]
        more = f"and {len(dataset.classes) - MAX_NAMED} more" if len(dataset.classes) > MAX_NAMED else ""
        items = [_swatch(COLORS[i % len(COLORS)], name) for i, name in enumerate(named)]
        self.legend.text = _legend(items, more) if items else "<i>no classes in this data set</i>"

    def color_by_trust(self, colors: list[TrustColors]) -> None:
        """Colour the maps by trust and show the legend."""
        self.maps.color_by_trust(colors)
        shading = colors[0].shading
        items = [_swatch(color, name) for color, name in zip(shading.colors, shading.names, strict=True)]
        prefixes = ("mean",) if len(colors) == 1 else MAP_NAMES
        means = "; ".join(
            f"{prefix} {trust.mean:.3f} at iteration {trust.iteration}"
            for prefix, trust in zip(prefixes, colors, strict=True)
        )
        self.legend.text = _legend(items, f"{means}. {shading.hint}")

    def show_forces(self, shot: Shot, dataset: Dataset, which: int) -> None:
        """Show the sizes of the forces on the chosen point in map `which`: 0 or 1."""
        if shot.point is None:
            self.forces.text = HINT
            return
        point, forces = shot.point, shot.forces[which]
        name = "" if dataset.labels is None else f", {escape(dataset.classes[dataset.labels[point]])}"
        of = f" in the {MAP_NAMES[which]}" if len(shot.runs) > 1 else ""
        if forces is None:
            self.forces.text = f"<b>Row {point}{name}{of}</b><br>This map is computed at once, without forces."
            return
        pull, push = (float(np.linalg.norm(F)) for F in forces[:2])
        net = float(np.linalg.norm(forces.attraction + forces.repulsion))
        rows = [
            _swatch(ATTRACTION, f"attraction {pull:.3g}"), _swatch(REPULSION, f"repulsion {push:.3g}"),
            _swatch("none", f"sum {net:.3g}"),
        ]  # fmt: skip
        self.forces.text = f"<b>Row {point}{name}{of}</b>{_legend(rows, '')}"

    def show_link(self, address: str) -> None:
        """Show a link and copy it to the clipboard."""
        self.link.visible = True
        self.link.value = ""
        self.link.value = address


def _swatch(color: str, name: str) -> str:
    style = f"display:inline-block;width:10px;height:10px;border-radius:5px;background:{_shade(color)}"
    dot = f'<span style="{style}"></span>'
    return f'<span style="white-space:nowrap;margin-right:10px">{dot} {escape(name)}</span>'


def _shade(color: str) -> str:
    """Return a colour for the page, which lightens it in the dark theme as theme.js lightens the points."""
    return color if color == "none" else f"color-mix(in srgb, white calc(100% * var(--lighter)), {color})"


def _legend(items: list[str], more: str) -> str:
    return (
        f'<div style="line-height:1.6">{" ".join(items)} <span style="color:var(--muted)">{escape(more)}</span></div>'
    )
