// Script of views/page.py: decodes the points, colours them, shows a tooltip, searches, selects and exports.
"use strict"

const GROWTH = 0.4, MAX_GROWTH = 3 // dots grow with this power of the magnification, up to this factor
const TOOLTIP_ROWS = 12 // columns in the tooltip, besides the one that colours the points
const SEARCH_DELAY = 150 // milliseconds after the last key before the search starts

// Texts that a spreadsheet would run, and those of them that are numbers.
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/, NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/

// Decode an array written by encode_array of views/inline.py.
async function decode_array({type, data}) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))
  return new window[type](await new Response(stream).arrayBuffer())
}

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`

class Page {
  constructor(facts, view) {
    this.facts = facts
    this.view = view
    this.plot = view.model
    for (const name of ["names", "words", "frame", "edge", "graticule", "faint"]) this[name] = this.plot.document.get_model_by_name(name)
    this.dots = new Dots(element("dots"))
    this.colors = new Colors(this)
    this.size = 1 // of the dots, as chosen by the user
    this.matches = []
    this.selection = []
    this.mouse = null // its position in the plot, null outside
  }

  async load() {
    const {facts} = this
    this.x = await decode_array(facts.x)
    this.y = await decode_array(facts.y)
    for (const column of facts.columns) column.values = await decode_array(column.values)
    if (facts.globe) facts.globe = await decode_array(facts.globe)
    if (facts.image) facts.image.pixels = await decode_array(facts.image.pixels)
    this.space = make_space(this)
    this.extent = this.space.extent()
    const [xs, ys] = this.space.frame()
    this.frame.data = {xs, ys}
    this.upload()
    const {theme} = document.documentElement.dataset
    this.follows_system = theme === "system"
    this.apply_theme(this.follows_system ? preferred_scheme() : theme)
    this.colors.update_names()
    this.select([])
  }

  upload() {
    const positions = new Float32Array(2 * this.x.length)
    for (let i = 0; i < this.x.length; i++) {
      const seen = !Number.isNaN(this.x[i]) // other points are drawn far outside the page
      ;[positions[2 * i], positions[2 * i + 1]] = seen ? [this.x[i], this.y[i]] : [1e9, 1e9]
    }
    this.dots.set("at", positions)
  }

  // Visible region, with equal axes ---------------------------------------------------------------------------------

  range(values, rows) {
    return rows.reduce(([a, b], i) => [Math.min(a, values[i]), Math.max(b, values[i])], [Infinity, -Infinity])
  }

  home() {
    show_region(this.view, ...this.extent)
    this.home_width = this.plot.x_range.end - this.plot.x_range.start
  }

  zoom(rows) {
    if (this.facts.globe) return this.space.face(rows)
    const smallest = 0.02 * Math.max(...this.extent.map(([a, b]) => b - a))
    const widen = ([a, b]) => [Math.min(a, (a + b - smallest) / 2), Math.max(b, (a + b + smallest) / 2)]
    show_region(this.view, widen(this.range(this.x, rows)), widen(this.range(this.y, rows)))
  }

  draw() {
    if (this.redraw_pending) return
    this.redraw_pending = true
    requestAnimationFrame(() => {
      this.redraw_pending = false
      this.colors.update_names()
      this.draw_now()
    })
  }

  // Draw the points with at least `sharpness` pixels of the canvas per pixel of the page.
  draw_now(sharpness = 1) {
    const {text, background} = this.facts.themes[this.theme]
    const region = visible_region(this.plot)
    const magnification = Math.max(this.home_width / region.span[0], 1)
    const size = this.size * this.facts.size * Math.min(magnification ** GROWTH, MAX_GROWTH)
    const offsets = this.space.offsets(region)
    this.dots.draw({...region, offsets, size, sharpness, ring: opaque(text), background: opaque(background)})
  }

  apply_theme(key) {
    this.theme = key
    const {background, text} = this.facts.themes[key]
    document.documentElement.dataset.theme = key
    element("theme").textContent = key === "dark" ? "light theme" : "dark theme"
    this.words.glyph.setv({text_color: {value: text}, background_fill_color: {value: background}})
    this.edge.glyph.setv({line_color: {value: this.facts.themes[key].muted}})
    this.faint.glyph.setv({line_color: {value: this.facts.themes[key].missing}})
    this.colors.paint()
    this.colors.update_legend()
  }

  // One point -----------------------------------------------------------------------------------------------------------

  nearest(x, y) {
    const {x_range} = this.plot
    const reach = REACH * (x_range.end - x_range.start) / this.view.frame.bbox.width
    let found = -1, smallest = reach ** 2
    for (let i = 0; i < this.x.length; i++) {
      const [a, b] = this.space.image(i, x, y), d2 = (a - x) ** 2 + (b - y) ** 2
      if (d2 <= smallest) [found, smallest] = [i, d2]
    }
    return found
  }

  // Return a value as text; empty if missing.
  format(column, value) {
    if (column.kind === "class") return value < 0 ? "" : column.names[value]
    if (column.iso && !Number.isNaN(value)) return new Date(1000 * value).toISOString().slice(0, column.iso).replace("T", " ")
    return Number.isNaN(value) ? "" : column.integral ? String(value) : String(Number(value.toPrecision(5)))
  }

  // Show the point under the mouse at [left, top] of the plot, or none; the map may move below the mouse, as in a zoom.
  point_at(mouse) {
    this.mouse = mouse
    if (this.pointing) return
    this.pointing = true
    requestAnimationFrame(() => {
      this.pointing = false
      if (!this.mouse) return this.show_tooltip(-1)
      const {x_scale, y_scale} = this.view.frame
      const {left, top} = this.view.el.getBoundingClientRect()
      const [sx, sy] = this.mouse
      this.show_tooltip(this.nearest(x_scale.invert(sx), y_scale.invert(sy)), left + sx, top + sy)
    })
  }

  // Show the values of a row near (left, top), or hide the tooltip if row is −1.
  show_tooltip(row, left, top) {
    const tip = element("tip"), mark = element("mark")
    tip.hidden = mark.hidden = row < 0
    if (row < 0) return
    const {x_scale, y_scale} = this.view.frame
    const corner = this.view.el.getBoundingClientRect()
    const [x, y] = this.space.image(row, x_scale.invert(left - corner.left), y_scale.invert(top - corner.top))
    mark.style.left = `${corner.left + x_scale.compute(x)}px`
    mark.style.top = `${corner.top + y_scale.compute(y)}px`
    tip.dataset.row = row
    tip.replaceChildren()
    if (this.facts.image) this.draw_image(tip, row)
    const table = add(tip, "table")
    const {columns} = this.facts
    const shown = columns.filter((column, i) => i < TOOLTIP_ROWS || i === this.colors.chosen)
    const values = shown.map((column) => [column.name, this.format(column, column.values[row])])
    if (shown.length < columns.length) values.push(["…", `${columns.length - shown.length} more`])
    for (const [name, value] of [["row", String(row)], ...values]) {
      const line = add(table, "tr")
      add(line, "th", name)
      add(line, "td", value)
    }
    const {width, height} = tip.getBoundingClientRect()
    tip.style.left = `${left + 16 + width < innerWidth ? left + 16 : Math.max(left - 16 - width, 0)}px`
    tip.style.top = `${Math.max(Math.min(top + 12, innerHeight - height - 4), 0)}px`
  }

  draw_image(parent, row) {
    const {width, height, channels, pixels} = this.facts.image
    const canvas = add(parent, "canvas", "", {width, height})
    const target = canvas.getContext("2d").createImageData(width, height)
    for (let p = 0; p < width * height; p++) {
      for (let c = 0; c < 3; c++)
        target.data[4 * p + c] = pixels[(row * width * height + p) * channels + (channels === 3 ? c : 0)]
      target.data[4 * p + 3] = 255
    }
    canvas.getContext("2d").putImageData(target, 0, 0)
  }

  is_visible(i) {
    const {x_range, y_range} = this.plot, [x, y] = [this.x[i], this.y[i]]
    return x >= x_range.start && x <= x_range.end && y >= y_range.start && y <= y_range.end
  }

  visible_rows() { return this.rows((i) => this.is_visible(i)) }

  reset() {
    this.space.reset()
    this.home()
  }

  // Some points ---------------------------------------------------------------------------------------------------------

  rows(test) {
    const found = []
    for (let i = 0; i < this.x.length; i++) if (test(i)) found.push(i)
    return found
  }

  select(rows) {
    this.selection = rows
    element("selected").textContent = rows.length ? count(rows.length, "point") : "no points"
    for (const id of ["export", "clear"]) element(id).disabled = !rows.length
    this.colors.paint()
    show_summary(this)
  }

  // Select the points in a lasso or box; add them to the selection if `extend`.
  select_enclosed({type, x, y, x0, x1, y0, y1}, extend) {
    const test = type === "poly" ? this.inside(Array.from(x), Array.from(y))
      : (a, b) => a >= x0 && a <= x1 && b >= y0 && b <= y1
    const offsets = this.space.offsets(visible_region(this.plot))
    const rows = this.rows((i) => offsets.some(([a, b]) => test(this.x[i] + a, this.y[i] + b)))
    this.select(extend ? [...new Set([...this.selection, ...rows])] : rows)
  }

  // Return a test of whether a position lies inside a polygon (even-odd rule).
  inside(x, y) {
    const [left, right] = [Math.min(...x), Math.max(...x)], [low, high] = [Math.min(...y), Math.max(...y)]
    return (a, b) => {
      if (a < left || a > right || b < low || b > high) return false
      let odd = false // number of edges crossed to the right
      for (let j = 0, k = x.length - 1; j < x.length; k = j++)
        if ((y[j] > b) !== (y[k] > b) && a < (x[k] - x[j]) * (b - y[j]) / (y[k] - y[j]) + x[j]) odd = !odd
      return odd
    }
  }

  search(text) {
    const wanted = text.trim().toLowerCase()
    const tests = this.facts.columns.map((column) => {
      if (column.kind !== "class") return (i) => this.format(column, column.values[i]) === wanted
      const matches = column.names.map((name) => name.toLowerCase().includes(wanted))
      return (i) => matches[column.values[i]]
    })
    this.matches = wanted ? this.rows((i) => String(i) === wanted || tests.some((test) => test(i))) : []
    element("matches").dataset.of = wanted
    element("matches").textContent = wanted ? `${count(this.matches.length, "point")} found` : ""
    for (const id of ["zoom", "take"]) element(id).disabled = !this.matches.length
    this.dots.set_rows("found", this.matches)
    this.draw()
  }

  csv() {
    const quote = (text) => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
    const mark = (text) => FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text // as data/formulas.py
    const digits = (value) => Number.isNaN(value) ? "" : String(Number(value.toPrecision(7))) // precision of float32
    const {columns} = this.facts
    const axes = ["x", "y", "z"].slice(0, this.facts.globe ? 3 : 2)
    const lines = [["row", ...axes, ...columns.map((column) => mark(column.name))]]
    for (const i of [...this.selection].sort((a, b) => a - b)) {
      const values = columns.map((column) => column.kind === "class" || column.integral || column.iso
        ? mark(this.format(column, column.values[i])) : digits(column.values[i]))
      lines.push([String(i), ...this.space.original(i).map(digits), ...values])
    }
    return lines.map((line) => line.map(quote).join(",")).join("\n") + "\n"
  }

  save() {
    save_file(new Blob([this.csv()], {type: "text/csv"}), "selection.csv")
  }

  // The controls --------------------------------------------------------------------------------------------------------

  listen() {
    const {plot} = this
    on_resize(this.view, () => {
      align_canvas(element("dots"), this.view)
      this.home()
      this.draw()
    })
    for (const range of [plot.x_range, plot.y_range])
      range.change.connect(() => {
        this.draw()
        if (this.mouse) this.point_at(this.mouse)
      })
    let shift = false
    for (const event of ["pointerdown", "pointerup"])
      addEventListener(event, ({shiftKey}) => { shift = shiftKey }, {capture: true})
    plot.on_event("selectiongeometry", ({geometry, final}) => { if (final) this.select_enclosed(geometry, shift) })
    plot.on_event("mousemove", ({sx, sy}) => this.point_at([sx, sy]))
    plot.on_event("mouseleave", () => this.point_at(null))
    let timer = 0
    element("search").addEventListener("input", ({target}) => {
      clearTimeout(timer)
      timer = setTimeout(() => this.search(target.value), SEARCH_DELAY)
    })
    element("reset").addEventListener("click", () => this.reset())
    element("enclose").addEventListener("click", () => this.select(this.visible_rows()))
    this.space.listen()
    new Keyboard(this).listen()
    element("zoom").addEventListener("click", () => this.zoom(this.matches))
    element("take").addEventListener("click", () => this.select(this.matches))
    element("export").addEventListener("click", () => this.save())
    element("clear").addEventListener("click", () => this.select([]))
    element("names").addEventListener("change", () => this.colors.update_names())
    element("size").addEventListener("input", ({target}) => {
      this.size = 2 ** Number(target.value)
      this.draw()
    })
    element("opacity").addEventListener("input", ({target}) => {
      this.colors.opacity = Number(target.value) / 100
      this.colors.paint()
    })
    element("picture").addEventListener("click", () => save_picture(this))
    element("theme").addEventListener("click", () => {
      this.apply_theme(this.theme === "dark" ? "light" : "dark")
      if (this.follows_system) choose_scheme(this.theme)
    })
    if (this.follows_system) on_system_scheme((name) => this.apply_theme(name))
  }
}

async function start() {
  try {
    await Bokeh.embed.embed_item(content("map-json"), "plot")
    const page = new Page(content("facts"), [...Bokeh.index.roots][0])
    await page.load()
    page.colors.offer()
    page.listen()
    document.body.dataset.ready = "yes"
  } catch (error) {
    element("trouble").textContent = `The map cannot be shown: ${error.message}.`
    throw error
  }
}

start()
