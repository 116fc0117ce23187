"""The form about the columns of a file: sends what it shows to the browser, and reads the answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from ...views.column import MAX_CLASSES
from ..preview import ROW_NAMES, Preview
from ..session.metrics import COMPLETE, EVERY_KIND, METRICS, check_metric
from ..table_choices import TableChoices

MAX_ANSWER = 200_000  # characters
FILLED = ("mean", "median")
Act = Callable[[Any], None]


class Answer(NamedTuple):
    """What the user chose about a file: its name in the studio, the choices and the metric."""

    data: str
    choices: TableChoices
    metric: str


class TableForm:
    """A form that table_form.js shows as a dialog.

    `models` are the Bokeh models that the form needs on the page.
    """

    def __init__(self) -> None:
        from bokeh.models import ColumnDataSource, CustomJS

        self.data: str | None = None  # the file that the form is about; None while the form is closed
        self.state = ColumnDataSource(name="table form")  # what the form shows, as JSON; empty if it is closed
        self.answer = ColumnDataSource(name="table answer")  # the choices, as JSON
        self._number = 0  # each state differs from the last, so that the browser is told
        code = "document.dispatchEvent(new CustomEvent('table form', {detail: cb_obj.tags[0]}))"
        self.state.js_on_change("tags", CustomJS(code=code))
        self.models = (self.state, self.answer)

    def on_answer(self, make_listener: Callable[[Act], Any], act: Callable[[Answer | None], None]) -> None:
        """Call `act` with each answer, None if the user cancelled; `make_listener` makes a listener of Bokeh."""
        self.answer.on_change("tags", make_listener(lambda tags: self._read(tags, act)))

    def show(self, data: str, title: str, preview: Preview, chosen: Answer | None = None) -> None:
        """Open the form for the file `data`; it starts with the choices of the last answer, or those suggested."""
        self.data = data
        choices, metric = (preview.choices, preview.metric) if chosen is None else (chosen.choices, chosen.metric)
        missing, metric = _as_shown(choices, metric)
        metrics = {kind: [(name, METRICS[name].title) for name in names] for kind, names in _SHOWN.items()}
        start: dict[str, Any] = {"label": choices.label, "id": choices.id, "exclude": choices.exclude, "metric": metric}
        start |= {"missing": missing, "standardize": choices.standardize}
        fixed = {"max_classes": MAX_CLASSES, "row_names": ROW_NAMES}
        self._send(title=title, preview=preview.as_dict(), start=start, metrics=metrics, error="", **fixed)

    def show_error(self, text: str) -> None:
        """Show an error in the form, if it is open."""
        if self.data is not None:
            self._send(error=text)

    def close(self) -> None:
        if self.data is not None:
            self.data = None
            self._send(closed=True)

    def _send(self, **state: Any) -> None:
        self._number += 1
        self.state.tags = [json.dumps({"number": self._number, **state})]

    def _read(self, tags: list[Any], act: Callable[[Answer | None], None]) -> None:
        text = tags[0] if tags else ""
        if not isinstance(text, str) or len(text) > MAX_ANSWER:
            raise ValueError("the choices about the table are not valid; open the form again")
        data = self.data
        given = json.loads(text)
        if given is None:  # cancelled
            self.data = None
            act(None)
        elif data is not None:
            act(read_answer(data, given))


_SHOWN = {"numbers": tuple(COMPLETE), "every kind": ("mixed",)}


def _as_shown(choices: TableChoices, metric: str) -> tuple[str, str]:
    """Return how missing values are treated and the metric, as the form shows them."""
    if metric.startswith("mixed_"):
        return metric.removeprefix("mixed_"), "mixed"
    if choices.every_kind:
        return ("drop" if choices.missing == "drop" else "distance"), "mixed"
    return choices.missing, "euclidean" if metric == "nan_euclidean" else metric


def read_answer(data: str, given: Any) -> Answer:
    """Return the answer in the JSON value that the form sent; raise ValueError if it is not valid."""
    names = {"label", "id", "exclude", "metric", "missing", "standardize"}
    if not isinstance(given, dict) or given.keys() != names or not isinstance(given["exclude"], list):
        raise ValueError("the choices about the table are not valid; open the form again")
    metric, missing = given["metric"], given["missing"]
    if not isinstance(metric, str) or not isinstance(missing, str):
        raise ValueError("the choices about the table are not valid; open the form again")
    check_metric(metric)
    every_kind = metric in EVERY_KIND
    if every_kind and missing in FILLED:
        metric, missing = f"{metric}_{missing}", "error"
    elif every_kind and missing == "distance":
        missing = "error"  # the metric compares rows in the columns where both have a value
    elif missing == "distance":
        if metric != "euclidean":
            raise ValueError(
                f"the metric {METRICS[metric].title} needs a value in every cell; choose the Euclidean or the mixed"
                " metric, drop the rows with gaps, or fill the gaps in"
            )
        metric = "nan_euclidean"
    columns = (given["label"], given["id"], tuple(given["exclude"]))
    return Answer(data, TableChoices(*columns, every_kind, missing, given["standardize"]), metric)
