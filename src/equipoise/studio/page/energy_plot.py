"""Plots the kinetic, potential and total energy of a run whose points have mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...views.style import COLORS

KINETIC, POTENTIAL, TOTAL = COLORS[1], COLORS[0], "#3a3f4b"
MAX_POINTS = 1000  # of a line


def small_figure(name: str, title: str) -> Any:
    """Return an empty figure for the side of the page."""
    from bokeh.plotting import figure

    plot: Any = figure(
        name=name, height=170, min_border_left=42, tools="", toolbar_location=None, title=title,
        sizing_mode="stretch_width",
    )  # fmt: skip
    plot.outline_line_color = plot.background_fill_color = plot.border_fill_color = None
    plot.grid.grid_line_color = "#eceef3"
    plot.axis.minor_tick_line_color = None
    plot.axis.major_label_text_font_size = "11px"
    plot.title.text_font_size = "13px"
    plot.yaxis.ticker.desired_num_ticks = 4
    plot.xaxis.ticker.desired_num_ticks = 5
    return plot


class EnergyPlot:
    """The energies of the active run over its iterations; hidden if it has none."""

    def __init__(self) -> None:
        from bokeh.models import ColumnDataSource, Legend, LegendItem

        self.source = ColumnDataSource(name="energies", data=_columns([]))
        self.plot = small_figure("energy", "Energy")
        self.plot.height = 190
        lines = {
            "kinetic": {"line_color": KINETIC},
            "potential (the loss)": {"line_color": POTENTIAL},
            "total": {"line_color": TOTAL, "line_dash": "dashed"},
        }
        items = [
            LegendItem(
                label=label,
                renderers=[self.plot.line("iteration", label.split()[0], source=self.source, line_width=2, **style)],
            )
            for label, style in lines.items()
        ]
        legend = Legend(
            items=items, orientation="horizontal", border_line_color=None, background_fill_color=None,
            label_text_font_size="11px", margin=0, padding=0, spacing=8, glyph_width=14, label_standoff=3,
        )  # fmt: skip
        self.plot.add_layout(legend, "below")
        self.plot.visible = False

    def show(self, energy: list[tuple[int, float, float]], which: str = "") -> None:
        """Draw the energies of a run: iteration, kinetic and potential; `which` names its map if there are two."""
        self.plot.visible = len(energy) > 1
        if self.plot.visible:
            self.source.data = _columns(energy)
            self.plot.title.text = f"Energy, {which}" if which else "Energy"


def _columns(energy: list[tuple[int, float, float]]) -> dict[str, Any]:
    rows = np.array(energy, dtype=np.float64).reshape(-1, 3)
    rows = rows[np.unique(np.linspace(0, max(len(rows) - 1, 0), min(len(rows), MAX_POINTS)).astype(int))]
    iteration, kinetic, potential = rows.T
    return {"iteration": iteration, "kinetic": kinetic, "potential": potential, "total": kinetic + potential}
