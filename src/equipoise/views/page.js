// Script of views/page.py: decodes the points, colours them, shows a tooltip, searches, selects and exports.
"use strict"

const REACH = 12 // maximum distance in pixels between the mouse and the point under it
const MAX_NAMED = 40 // maximum number of classes named on the map
const MAX_LISTED = 200 // maximum number of classes in the legend
const OPACITY = 230, FAINT = 30 // of 255: points, and unselected points during a selection
const GROWTH = 0.4, MAX_GROWTH = 3 // dots grow with this power of the magnification, up to this factor
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
    this.color = facts.color
    this.apply_theme(document.documentElement.dataset.theme)
    this.update_names()
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
      this.update_names()
      const {text, background} = this.facts.themes[this.theme]
      const region = visible_region(this.plot)
      const magnification = Math.max(this.home_width / region.span[0], 1)
      const size = this.facts.size * Math.min(magnification ** GROWTH, MAX_GROWTH)
      const offsets = this.space.offsets(region)
      this.dots.draw({...region, offsets, size, ring: opaque(text), background: opaque(background)})
    })
  }

  // Colours -------------------------------------------------------------------------------------------------------------

  offer_colors() {
    const select = element("color")
    add(select, "option", "one colour", {value: -1})
    this.facts.columns.forEach((column, c) => { if (column.colored) add(select, "option", column.name, {value: c}) })
    select.value = this.facts.color
    select.addEventListener("change", () => {
      this.color = Number(select.value)
      this.paint()
      this.update_legend()
      this.update_names()
    })
  }

  palette() {
    const theme = this.facts.themes[this.theme]
    const column = this.facts.columns[this.color]
    if (!column) return [theme.colors[0]]
    return column.kind === "class" ? column.color_indices.map((index) => theme.colors[index]) : theme.ramp
  }

  paint() {
    const {missing} = this.facts.themes[this.theme]
    const column = this.facts.columns[this.color]
    const colors = [...this.palette(), missing].map(rgb), last = colors.length - 1
    const color_index = !column ? () => 0
      : column.kind === "class" ? (value) => value < 0 ? last : value
      : (value) => Number.isNaN(value) ? last
        : Math.min(Math.max(Math.floor(last * (value - column.low) / (column.high - column.low)), 0), last - 1)
    const bytes = new Uint8Array(4 * this.x.length)
    const level = new Uint8Array(this.x.length) // missing values at the bottom, selected points on top
    for (const i of this.selection) level[i] = 2
    for (let i = 0; i < level.length; i++) {
      const color = color_index(column?.values[i])
      bytes.set(colors[color], 4 * i)
      bytes[4 * i + 3] = this.selection.length && !level[i] ? FAINT : OPACITY
      if (!level[i] && color < last) level[i] = 1
    }
    const order = scrambled(this.x.length)
    this.dots.set_rows("order", [0, 1, 2].flatMap((wanted) => [...order.filter((i) => level[i] === wanted)]))
    this.dots.set("color", bytes)
    this.draw()
  }

  update_legend() {
    const column = this.facts.columns[this.color]
    const legend = element("legend"), scale = element("scale"), colors = this.palette()
    legend.replaceChildren()
    scale.hidden = column?.kind !== "number"
    if (column?.kind === "number") {
      scale.querySelector(".bar").style.background = `linear-gradient(to right, ${colors.join(", ")})`
      const ends = scale.querySelectorAll(".ends span")
      ends[0].textContent = this.format(column, column.low)
      ends[1].textContent = this.format(column, column.high)
    }
    if (column?.kind !== "class") return
    const sizes = new Uint32Array(column.names.length)
    for (const code of column.values) if (code >= 0) sizes[code]++
    column.names.slice(0, MAX_LISTED).forEach((name, code) => {
      const button = add(add(legend, "li"), "button", "", {type: "button", title: "select this class"})
      add(button, "span", "", {className: "dot"}).style.background = colors[code]
      add(button, "span", name, {className: "name"})
      add(button, "span", sizes[code].toLocaleString("en"), {className: "muted"})
      button.addEventListener("click", () => this.select(this.rows((i) => column.values[i] === code)))
    })
    const more = column.names.length - MAX_LISTED
    if (more > 0) add(legend, "li", `and ${more} more`, {className: "muted"})
  }

  update_names() {
    const column = this.facts.columns[this.color]
    const nameable = column?.kind === "class" && column.names.length <= MAX_NAMED
    element("naming").hidden = !nameable
    const shown = nameable && element("names").checked
    const named = shown ? column.names.map((text, i) => [text, ...column.centers[i]]).filter(([, x]) => x !== null) : []
    const offsets = this.space.offsets(visible_region(this.plot))
    const labels = this.without_overlap(offsets.flatMap(([a, b]) => named.map(([text, x, y]) => [text, x + a, y + b])))
    const data = {text: labels.map(([text]) => text), x: labels.map(([, x]) => x), y: labels.map(([, , y]) => y)}
    if (JSON.stringify(data) !== JSON.stringify(this.names.data)) this.names.data = data
  }

  // Return the names that do not overlap an earlier one at the current zoom; zooming in shows more.
  without_overlap(names) {
    const {x_scale, y_scale} = this.view.frame
    const boxes = []
    return names.filter(([text, x, y]) => {
      const box = [x_scale.compute(x), y_scale.compute(y), 4.5 * text.length + 4, 10] // centre and half the size
      const free = boxes.every(([a, b, w, h]) => Math.abs(a - box[0]) >= w + box[2] || Math.abs(b - box[1]) >= h + box[3])
      if (free) boxes.push(box)
      return free
    })
  }

  apply_theme(key) {
    this.theme = key
    const {background, text} = this.facts.themes[key]
    document.documentElement.dataset.theme = key
    element("theme").textContent = key === "dark" ? "light theme" : "dark theme"
    this.words.glyph.setv({text_color: {value: text}, background_fill_color: {value: background}})
    this.edge.glyph.setv({line_color: {value: this.facts.themes[key].muted}})
    this.faint.glyph.setv({line_color: {value: this.facts.themes[key].missing}})
    this.paint()
    this.update_legend()
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
    const values = this.facts.columns.map((column) => [column.name, this.format(column, column.values[row])])
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
    this.paint()
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
    const address = URL.createObjectURL(new Blob([this.csv()], {type: "text/csv"}))
    add(document.body, "a", "", {href: address, download: "selection.csv", hidden: true}).click()
    document.body.lastChild.remove()
    setTimeout(() => URL.revokeObjectURL(address), 10_000)
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
    element("reset").addEventListener("click", () => {
      this.space.reset()
      this.home()
    })
    this.space.listen()
    element("zoom").addEventListener("click", () => this.zoom(this.matches))
    element("take").addEventListener("click", () => this.select(this.matches))
    element("export").addEventListener("click", () => this.save())
    element("clear").addEventListener("click", () => this.select([]))
    element("names").addEventListener("change", () => this.update_names())
    element("theme").addEventListener("click", () => this.apply_theme(this.theme === "dark" ? "light" : "dark"))
  }
}

async function start() {
  try {
    await Bokeh.embed.embed_item(content("map-json"), "plot")
    const page = new Page(content("facts"), [...Bokeh.index.roots][0])
    await page.load()
    page.offer_colors()
    page.listen()
    document.body.dataset.ready = "yes"
  } catch (error) {
    element("trouble").textContent = `The map cannot be shown: ${error.message}.`
    throw error
  }
}

start()
