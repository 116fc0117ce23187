"""Shows sliders for the parameters of the selected method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..session.parameters import METHODS, PARAMETERS, Value

Changed = Callable[[str, Value], None]


class Sliders:
    """Sliders for all parameters; only those of the selected method are visible.

    Logarithmic sliders display the value, not its logarithm.
    """

    def __init__(self, changed: Changed):
        from bokeh.models import Checkbox, Column, CustomJSTickFormatter, Slider

        self._changed = changed
        self._updating = False
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
            # Parameters that need a new neighbour search take effect when the slider is released.
            event = "value_throttled" if parameter.rebuilds else "value"
            slider.on_change(event, self._make_listener(name))
            self.sliders[name] = slider
        self.auto = Checkbox(name="auto", label="automatic learning rate", active=True, margin=(4, 5, 2, 5))
        self.auto.on_change("active", self._auto_switched)
        rows = [self.sliders[name] for name in PARAMETERS if name != "learning_rate"]
        children = [*rows, self.auto, self.sliders["learning_rate"]]
        self.column = Column(children=children, sizing_mode="stretch_width", spacing=0, visible=False)

    def _make_listener(self, name: str) -> Callable[[str, Any, Any], None]:
        """Return a listener that reports the new value, unless `show` moved the slider."""

        def moved(attribute: str, old: Any, new: Any) -> None:
            if not self._updating:
                self._changed(name, self._value(name, float(new)))

        return moved

    def _value(self, name: str, position: float) -> Value:
        """Return the value of a parameter at a position of its slider, limited to the range of the parameter."""
        parameter, slider = PARAMETERS[name], self.sliders[name]
        # The browser may send any number.
        position = float(np.clip(np.nan_to_num(position, nan=slider.start), slider.start, slider.end))
        number = float(f"{10**position:.3g}") if parameter.log else round(position, 4)
        number = min(max(number, parameter.low), parameter.high)
        return int(number) if parameter.integer else number

    def _auto_switched(self, attribute: str, old: Any, new: Any) -> None:
        rate = self.sliders["learning_rate"]
        rate.visible = not new
        if not self._updating:
            self._changed("learning_rate", "auto" if new else self._value("learning_rate", rate.value))

    def show(self, method: str, values: dict[str, Value], n: int, rate: float) -> None:
        """Set the sliders to the values of a run on n points.

        While the learning rate is automatic, its slider is hidden and set to `rate`.
        """
        self._updating = True
        self.column.visible = True  # hidden before the first run
        try:
            for name, slider in self.sliders.items():
                slider.visible = name in METHODS[method].parameters
            self.sliders["perplexity"].end = float(np.log10(max(4.0, min(PARAMETERS["perplexity"].high, (n - 1) / 3))))
            self.sliders["n_neighbors"].end = max(3.0, min(PARAMETERS["n_neighbors"].high, n - (method != "umap")))
            self.auto.visible = "learning_rate" in values
            self.auto.active = values.get("learning_rate", "auto") == "auto"
            for name, value in values.items():
                number = rate if value == "auto" else float(value)
                slider = self.sliders[name]
                position = float(np.log10(number)) if PARAMETERS[name].log else number
                slider.value = min(max(position, slider.start), slider.end)
            self.sliders["learning_rate"].visible = self.auto.visible and not self.auto.active
        finally:
            self._updating = False
