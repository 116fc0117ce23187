// Connects the state of the widget in Python, the `model`, with its map and controls in the browser.
"use strict"

const HOVER_PAUSE = 40 // milliseconds of rest before the values of a point are fetched

// Return bytes sent by Python as a typed array.
function from_bytes(bytes, type) {
  return bytes ? new type(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)) : new type(0)
}

class WidgetView {
  constructor(model, el) {
    this.model = model
    this.root = add(el, "div", "", {className: "eq-widget"})
    this.root.dataset.lmSuppressShortcuts = "true" // keys do not run commands of JupyterLab
    const title = model.get("_title")
    if (title) add(this.root, "div", title, {className: "eq-title"})
    this.toolbar = new Toolbar(this.root, this.toolbar_actions())
    const body = add(this.root, "div", "", {className: "eq-body"})
    this.stage = add(body, "div", "", {className: "eq-stage", tabIndex: 0})
    this.stage.style.height = `${model.get("_height")}px`
    this.stage.role = "application"
    this.stage.ariaLabel = `map of ${counted(model.get("_n"))} points; arrow keys move it, plus and minus zoom, Escape clears`
    this.panel = new SidePanel(body, model.get("_columns"), this.panel_actions())
    this.status = add(this.root, "div", "", {className: "eq-status eq-muted"})
    this.hint_box = add(this.stage, "div", "", {className: "eq-hint", hidden: true})
    this.map = new MapCanvas(this.stage, model.get("_dot_size"))
    this.map.on_view = () => this.view_changed()
    this.tooltip = new Tooltip(this.stage)
    this.pointer = new Pointer(this.map, this.stage, this.pointer_actions())
    this.root.addEventListener("keydown", (event) => { if (event.key === "Escape") this.escape(event) })
    this.listen()
    this.stop_watching = watch_theme(() => this.update_theme())
    this.update_all()
  }

  remove() {
    for (const [name, listener] of this.listeners) this.model.off(name, listener)
    this.stop_watching()
    this.map.remove()
  }

  // What the controls do ----------------------------------------------------------------------------------------------

  toolbar_actions() {
    return {
      tool: (name) => { this.pointer.tool = name; this.stage.dataset.tool = name },
      zoom: (factor) => this.map.move((view) => view.zoom(factor)),
      home: () => this.map.home(),
      search: (text) => this.send("search", text),
      zoom_to_found: () => this.map.zoom_to(this.map.found),
      select_found: () => this.select(this.map.found),
      save_png: () => this.map.picture().toBlob((blob) => save_file(blob, "map.png")),
      save_csv: () => {
        this.asked = crypto.getRandomValues(new Uint32Array(1))[0]
        this.model.send({kind: "csv", id: this.asked})
      },
    }
  }

  panel_actions() {
    return {
      color: (name) => this.send("color", name),
      clear: () => this.select(new Uint32Array(0)),
      select_class: (code, extend) => {
        const {codes} = this.map, rows = []
        for (let i = 0; i < codes.length; i++) if (codes[i] === code) rows.push(i)
        this.select(Uint32Array.from(rows), extend ? "add" : "replace")
      },
    }
  }

  pointer_actions() {
    return {
      hover: (left, top) => this.hover(left, top),
      leave: () => this.hover(null),
      select: (rows, mode) => this.select(rows, mode),
      hint: (text) => {
        this.hint_box.textContent = text
        this.hint_box.hidden = false
        clearTimeout(this.hint_timer)
        this.hint_timer = setTimeout(() => { this.hint_box.hidden = true }, HINT_TIME)
      },
    }
  }

  // End what is being drawn; otherwise clear the search, if it has the focus, or the selection.
  escape(event) {
    event.stopPropagation()
    if (this.pointer.drag) return this.pointer.cancel()
    if (event.target === this.toolbar.input) return this.send("search", "")
    this.select(new Uint32Array(0))
  }

  send(name, value) {
    this.model.set(name, value)
    this.model.save_changes()
  }

  select(rows, mode = "replace") {
    if (mode !== "replace") {
      const chosen = new Uint8Array(this.map.n)
      for (const row of this.map.selection) chosen[row] = 1
      for (const row of rows) chosen[row] = mode === "add" ? 1 : 0
      rows = Uint32Array.from(chosen.keys()).filter((row) => chosen[row])
    }
    this.send("selection", new DataView(Uint32Array.from(rows).buffer))
  }

  hover(left, top) {
    this.mouse = left === null ? null : [left, top]
    if (this.hovering) return
    this.hovering = true
    requestAnimationFrame(() => {
      this.hovering = false
      this.show_hovered(this.mouse ? this.map.nearest(...this.mouse) : -1)
    })
  }

  show_hovered(row) {
    this.map.mark_row(row)
    clearTimeout(this.hover_timer)
    if (row < 0) this.tooltip.hide()
    else {
      this.tooltip.show(row, ...this.mouse)
      if (this.model.get("_cells").row === row) this.tooltip.fill(this.model.get("_cells"))
    }
    if (this.model.get("hovered") !== row) this.hover_timer = setTimeout(() => this.send("hovered", row), HOVER_PAUSE)
  }

  // What Python says --------------------------------------------------------------------------------------------------

  listen() {
    const answers = {
      "change:_positions": () => this.update_points(),
      "change:_codes": () => this.update_colors(),
      "change:_legend": () => this.update_colors(),
      "change:_classes": () => this.update_colors(),
      "change:color": () => this.update_colors(),
      "change:selection": () => this.update_selection(),
      "change:found": () => this.update_found(),
      "change:search": () => this.update_found(),
      "change:_cells": () => this.tooltip.fill(this.model.get("_cells")),
      "change:_status": () => this.update_status(),
      "change:_note": () => this.update_status(),
      "msg:custom": ({kind, id, text}) => {
        if (kind === "csv" && id === this.asked) save_file(new Blob([text], {type: "text/csv"}), "selection.csv")
      },
    }
    this.listeners = Object.entries(answers)
    for (const [name, listener] of this.listeners) this.model.on(name, listener)
  }

  update_all() {
    this.update_theme()
    this.update_points()
    this.update_selection()
    this.update_found()
    this.update_status()
  }

  update_theme() {
    const dark = this.model.get("_dark") ?? is_dark_behind(this.root.parentNode), key = dark ? "dark" : "light"
    if (this.root.dataset.theme === key) return
    this.root.dataset.theme = key
    this.map.theme = this.model.get("_themes")[key]
    const {background, text, muted, missing} = this.map.theme
    for (const [name, color] of Object.entries({background, text, muted, line: missing}))
      this.root.style.setProperty(`--eq-${name}`, color)
    this.root.style.colorScheme = key
    this.update_colors()
  }

  update_points() {
    const points = from_bytes(this.model.get("_positions"), Float32Array)
    if (!points.length) return
    this.map.set_points(points)
    this.show_hovered(-1)
    this.update_colors()
  }

  update_colors() {
    const legend = this.model.get("_legend"), {centers = [], colors = [], marks = []} = this.model.get("_classes"), {theme} = this.map
    const bytes = this.model.get("_codes"), type = {1: Uint8Array, 2: Uint16Array, 4: Uint32Array}[bytes.byteLength / this.model.get("_n")]
    const palette = legend.kind === "number" ? theme.ramp.slice(0, 255)
      : legend.kind === "class" ? legend.names.map((_, code) => theme.colors[(colors[code] ?? code) % theme.colors.length])
      : [theme.colors[0]]
    this.map.names = legend.kind !== "class" || legend.names.length > SHOWN_NAMES ? []
      : legend.names.flatMap((name, code) => centers[code] ? [[name, ...centers[code]]] : [])
    this.map.set_colors(from_bytes(bytes, type), [...palette, theme.missing], marks)
    this.panel.show_legend(this.model.get("color"), legend, palette, marks)
  }

  update_selection() {
    const rows = from_bytes(this.model.get("selection"), Uint32Array)
    this.map.set_selection(rows)
    this.panel.show_selected(rows.length)
    this.toolbar.show_selected(rows.length)
  }

  update_found() {
    const rows = from_bytes(this.model.get("found"), Uint32Array)
    this.map.set_found(rows)
    this.toolbar.show_found(this.model.get("search"), rows.length)
  }

  update_status() {
    const note = this.model.get("_note"), waiting = this.map.n ? "" : "no map yet"
    this.status.textContent = [this.model.get("_status") || waiting, note && `This plot shows ${note}.`].filter(Boolean).join(" · ")
  }

  view_changed() {
    const {low, unit, height} = this.map.view
    this.stage.dataset.view = JSON.stringify({low, unit, height})
    if (this.tooltip.row >= 0 && this.mouse) this.hover(...this.mouse)
  }
}

function render({model, el}) {
  try {
    const view = new WidgetView(model, el)
    return () => view.remove()
  } catch (error) {
    add(el, "p", `The map cannot be shown: ${error.message}.`, {role: "alert"})
    throw error
  }
}

export default {render}
