// The controls of the widget: tools and search above the map, colours, legend and selection beside it.
"use strict"

const TYPING_PAUSE = 250 // milliseconds after the last key before the search starts
const LISTED_CLASSES = 200 // maximum number of classes in the legend

const counted = (n) => n.toLocaleString("en")

function add_button(parent, text, title, action) {
  const button = add(parent, "button", text, {type: "button", title})
  button.addEventListener("click", action)
  return button
}

class Toolbar {
  // `actions` has the functions tool(name), zoom(factor), home(), search(text), zoom_to_found(), select_found(),
  // save_png() and save_csv().
  constructor(parent, actions) {
    const bar = add(parent, "div", "", {className: "eq-toolbar", role: "toolbar", ariaLabel: "map"})
    const group = () => add(bar, "span", "", {className: "eq-group"})
    this.tools = {}
    const tools = group()
    for (const [name, title] of [
      ["pan", "drag to move the map"],
      ["lasso", "draw around points to select them; hold Shift to add, Alt to remove"],
      ["box", "drag a box to select points; hold Shift to add, Alt to remove"],
    ]) this.tools[name] = add_button(tools, name, title, () => { this.choose(name); actions.tool(name) })
    const view = group()
    add_button(view, "+", "zoom in", () => actions.zoom(KEY_ZOOM)).ariaLabel = "zoom in"
    add_button(view, "−", "zoom out", () => actions.zoom(1 / KEY_ZOOM)).ariaLabel = "zoom out"
    add_button(view, "reset", "show the whole map", actions.home)
    const search = group()
    search.classList.add("eq-search")
    this.input = add(search, "input", "", {type: "search", placeholder: "search", title: "row number, class, text or value"})
    this.input.ariaLabel = "search for a row number, class, text or value"
    Object.assign(this.input, {autocomplete: "off", spellcheck: false})
    this.matches = add(search, "span", "", {className: "eq-muted", ariaLive: "polite"})
    this.found = [
      add_button(search, "zoom to", "zoom to the points found", actions.zoom_to_found),
      add_button(search, "select", "select the points found", actions.select_found),
    ]
    let timer = 0
    this.input.addEventListener("input", () => {
      clearTimeout(timer)
      timer = setTimeout(() => actions.search(this.input.value), TYPING_PAUSE)
    })
    const files = group()
    add_button(files, "PNG", "save the map as it is seen as a picture", actions.save_png)
    this.csv = add_button(files, "CSV", "save the selected points as a table", actions.save_csv)
    this.choose("pan")
    this.show_found("", 0)
    this.show_selected(0)
  }

  choose(tool) {
    for (const [name, button] of Object.entries(this.tools)) button.ariaPressed = String(name === tool)
  }

  show_found(text, n) {
    if (this.input.value.trim() !== text.trim() && this.input.getRootNode().activeElement !== this.input) this.input.value = text
    this.matches.textContent = text.trim() ? `${counted(n)} found` : ""
    for (const button of this.found) button.hidden = !n
  }

  show_selected(n) { this.csv.disabled = !n }
}

class SidePanel {
  // `actions` has the functions color(name), select_class(code, add) and clear().
  constructor(parent, columns, actions) {
    this.actions = actions
    const panel = add(parent, "div", "", {className: "eq-panel"})
    const label = add(panel, "label", "colour by", {className: "eq-muted"})
    this.select = add(label, "select")
    add(this.select, "option", "one colour", {value: ""})
    for (const name of columns) add(this.select, "option", name, {value: name})
    this.select.addEventListener("change", () => actions.color(this.select.value || null))
    label.hidden = !columns.length
    this.scale = add(panel, "div", "", {className: "eq-scale"})
    this.bar = add(this.scale, "div", "", {className: "eq-bar"})
    this.ends = add(this.scale, "div", "", {className: "eq-ends"})
    this.legend = add(panel, "ul", "", {className: "eq-legend"})
    const chosen = add(panel, "div", "", {className: "eq-chosen"})
    this.count = add(chosen, "span", "", {ariaLive: "polite"})
    this.clear = add_button(chosen, "clear", "select no points (Escape)", actions.clear)
    this.show_selected(0)
  }

  // Show the legend of a column in the colours of `palette`, and with its `marks`.
  show_legend(color, legend, palette, marks) {
    this.select.value = color ?? ""
    this.scale.hidden = legend.kind !== "number"
    this.legend.replaceChildren()
    if (legend.kind === "number") {
      this.bar.style.background = `linear-gradient(to right, ${palette.slice(0, -1).join(", ")})`
      this.ends.replaceChildren()
      for (const text of legend.ends) add(this.ends, "span", text)
    }
    if (legend.kind !== "class") return
    legend.names.slice(0, LISTED_CLASSES).forEach((name, code) => {
      const button = add_button(add(this.legend, "li"), "", `select ${name}; hold Shift to add it`,
        (event) => this.actions.select_class(code, event.shiftKey))
      const dot = add(button, "span", "", {className: "eq-dot"}), corners = MARK_CORNERS[marks[code] ?? 0]
      dot.style.background = palette[code]
      if (corners) Object.assign(dot.style, {borderRadius: 0, clipPath: `polygon(${corners.map((corner) =>
        corner.map((part) => `${50 + 32 * part}%`).join(" ")).join(", ")})`})
      add(button, "span", name, {className: "eq-class"})
      add(button, "span", counted(legend.sizes[code]), {className: "eq-muted"})
    })
    const more = legend.names.length - LISTED_CLASSES
    if (more > 0) add(this.legend, "li", `and ${counted(more)} more`, {className: "eq-muted"})
  }

  show_selected(n) {
    this.count.textContent = n ? `${counted(n)} selected` : "none selected"
    this.clear.disabled = !n
  }
}
