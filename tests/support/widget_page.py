"""A page that shows a widget without a notebook: a model in JavaScript whose state is that of the widget in Python."""

import base64
import json
from contextlib import contextmanager

import numpy as np
from traitlets import All

PAGE = """<!DOCTYPE html><meta charset="utf-8">
<body style="margin: 12px; background: {background}"><div id="place"></div>"""
MODEL = """async ({state, esm, css}) => {
    const decode = (value) => value?.bytes === undefined ? value
      : new DataView(Uint8Array.from(atob(value.bytes), (c) => c.charCodeAt(0)).buffer)
    const encode = (value) => value instanceof DataView
      ? {bytes: btoa(Array.from(new Uint8Array(value.buffer), (b) => String.fromCharCode(b)).join(""))} : value
    const listeners = {}
    const model = {
      state: {}, changed: {},
      get(name) { return this.state[name] },
      set(name, value) { this.state[name] = this.changed[name] = value; this.fire(`change:${name}`) },
      on(name, listener) { (listeners[name] ??= []).push(listener) },
      off(name, listener) { listeners[name] = listeners[name].filter((other) => other !== listener) },
      fire(name, ...values) { for (const listener of listeners[name] ?? []) listener(...values) },
      take(news) {
        for (const [name, value] of Object.entries(news)) this.state[name] = decode(value)
        for (const name of Object.keys(news)) this.fire(`change:${name}`)
      },
      async save_changes() {
        const changes = Object.fromEntries(Object.entries(this.changed).map(([name, value]) => [name, encode(value)]))
        this.changed = {}
        this.take(await window.to_python(changes))
      },
      async send(content) { for (const answer of await window.ask_python(content)) this.fire("msg:custom", answer) },
    }
    for (const [name, value] of Object.entries(state)) model.state[name] = decode(value)
    document.head.append(Object.assign(document.createElement("style"), {textContent: css}))
    const {default: widget} = await import(`data:text/javascript;base64,${esm}`)
    window.model = model
    window.end = widget.render({model, el: document.getElementById("place")})
}"""


def encoded(state):
    """Return a state whose bytes can be written as JSON."""
    return {
        name: {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value
        for name, value in state.items()
    }


def decoded(value):
    return memoryview(base64.b64decode(value["bytes"])) if isinstance(value, dict) and "bytes" in value else value


@contextmanager
def shown(tab, widget, background="white"):
    """Show a widget in a tab until the end of the block; yield a function that sends what Python changed."""
    changed, sent = set(), []
    widget.observe(lambda change: changed.add(change.name), All)
    widget.send = sent.append

    def news():
        names = [name for name in changed if name in widget.keys]
        changed.clear()
        return encoded(widget.get_state(names))

    def to_python(changes):
        with_bytes = {name: decoded(value) for name, value in changes.items()}
        widget.set_state(with_bytes)
        changed.difference_update(name for name in changes if name != "selection")
        return news()

    def ask_python(content):
        sent.clear()
        widget._handle_custom_msg(content, [])
        return list(sent)

    tab.expose_function("to_python", to_python)
    tab.expose_function("ask_python", ask_python)
    tab.set_content(PAGE.format(background=background))
    state = widget.get_state()
    scripts = {name: state.pop(f"_{name}") for name in ("esm", "css")}
    esm = base64.b64encode(scripts["esm"].encode()).decode()
    tab.evaluate(MODEL, {"state": encoded(state), "esm": esm, "css": scripts["css"]})
    tab.wait_for_selector(".eq-stage[data-view]")
    yield lambda: tab.evaluate("(news) => window.model.take(news)", news())
    tab.evaluate("window.end()")


CIRCLE = [[0.5 + 0.15 * np.cos(t), 0.5 + 0.3 * np.sin(t)] for t in np.linspace(0, 6, 25)]


def lasso(tab, corners=CIRCLE, choose=True):
    """Draw through corners, fractions of the map's width and height, with the mouse; return the corners."""
    if choose:
        tab.get_by_role("button", name="lasso", exact=True).click()
    stage = tab.locator(".eq-stage")
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    places = [(round(box["x"] + a * box["width"]), round(box["y"] + b * box["height"])) for a, b in corners]
    tab.mouse.move(*places[0])
    tab.mouse.down()
    for place in places[1:]:
        tab.mouse.move(*place)
    tab.mouse.up()
    return [((x - box["x"]) / box["width"], (y - box["y"]) / box["height"]) for x, y in places]


def to_map(tab, corners):
    """Return fractions of the map's width and height in the coordinates of the map."""
    stage = tab.locator(".eq-stage")
    view = json.loads(stage.get_attribute("data-view"))
    box, border = stage.bounding_box(), 1
    x, y = np.asarray(corners, float).T * [[box["width"]], [box["height"]]] - border
    return np.array(view["low"]) + view["unit"] * np.column_stack([x, view["height"] - y])
