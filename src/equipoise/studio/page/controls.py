"""The sliders of a method's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..session.parameters import METHODS, PARAMETERS, Value

Changed = Callable[[str, Value], None]


class Sliders:
    """A slider for every parameter; those of the chosen method are shown. Logarithms are moved, numbers are shown."""

    def __init__(self, changed: Changed):
        from bokeh.models import Checkbox, Column, CustomJSTickFormatter, Slider

        self._changed = changed
        self._quiet = False
        self.sliders: dict[str, Any] = {}
        for name, parameter in PARAMETERS.items():
            low, high = np.log10([parameter.low, parameter.high]) if parameter.log else (parameter.low, parameter.high)
            code = "return String(Number((10 ** tick).toPrecision(3)))" if parameter.log else None
            slider = Slider(
                name=name,
                title=parameter.label,
                start=float(low),
                end=float(high),
                step=parameter.step,
                value=float(low),
                format=CustomJSTickFormatter(code=code) if code else "0[.]00",
                sizing_mode="stretch_width",
                margin=(2, 12, 6, 4),
            )
            # New neighbourhoods take a while: they are searched when the slider is let go.
            heard = "value_throttled" if parameter.rebuilds else "value"
            slider.on_change(heard, self._moved(name))
            self.sliders[name] = slider
        self.auto = Checkbox(name="auto", label="automatic learning rate", active=True, margin=(4, 5, 2, 5))
        self.auto.on_change("active", self._auto_switched)
        rows = [self.sliders[name] for name in PARAMETERS if name != "learning_rate"]
        children = [*rows, self.auto, self.sliders["learning_rate"]]
        self.column = Column(children=children, sizing_mode="stretch_width", spacing=0, visible=False)

    def _moved(self, name: str) -> Callable[[str, Any, Any], None]:
        def moved(attribute: str, old: Any, new: Any) -> None:
            if not self._quiet:
                self._changed(name, self._number(name, float(new)))

        return moved

    def _number(self, name: str, position: float) -> Value:
        parameter, slider = PARAMETERS[name], self.sliders[name]
        position = float(np.clip(np.nan_to_num(position, nan=slider.start), slider.start, slider.end))  # of any client
        number = float(f"{10**position:.3g}") if parameter.log else round(position, 4)
        number = min(max(number, parameter.low), parameter.high)
        return int(number) if parameter.whole else number

    def _auto_switched(self, attribute: str, old: Any, new: Any) -> None:
        rate = self.sliders["learning_rate"]
        rate.visible = not new
        if not self._quiet:
            self._changed("learning_rate", "auto" if new else self._number("learning_rate", rate.value))

    def show(self, method: str, values: dict[str, Value], n: int, rate: float) -> None:
        """Put the sliders where a run is; `rate` is shown when its learning rate is automatic."""
        self._quiet = True
        self.column.visible = True  # not before there is a run
        try:
            for name, slider in self.sliders.items():
                slider.visible = name in METHODS[method].parameters
            self.sliders["perplexity"].end = float(np.log10(max(4.0, min(PARAMETERS["perplexity"].high, (n - 1) / 3))))
            self.sliders["n_neighbors"].end = max(3.0, min(PARAMETERS["n_neighbors"].high, n))
            self.auto.active = values["learning_rate"] == "auto"
            for name, value in values.items():
                number = rate if value == "auto" else float(value)
                slider = self.sliders[name]
                position = float(np.log10(number)) if PARAMETERS[name].log else number
                slider.value = min(max(position, slider.start), slider.end)
            self.sliders["learning_rate"].visible = not self.auto.active
        finally:
            self._quiet = False
