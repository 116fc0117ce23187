// The page of views/page.py: unpacks the points, colours them, tells about one under the mouse, finds and saves some.
"use strict"

const REACH = 12 // pixels between the mouse and the point that it means, at most
const NAMED = 40 // classes that are named on the map, at most
const LISTED = 200 // classes in the legend, at most
const PAUSE = 150 // milliseconds without a key until the search begins
const element = (id) => document.getElementById(id)
const content = (id) => JSON.parse(element(id).textContent)

function add(parent, tag, text = "", properties = {}) {
  const child = Object.assign(document.createElement(tag), properties)
  child.append(text)
  parent.append(child)
  return child
}

async function unpack({type, data}) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))
  return new window[type](await new Response(stream).arrayBuffer())
}

const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`

class Page {
  constructor(facts, doc) {
    this.facts = facts
    for (const name of ["plot", "points", "mapper", "found", "over", "names", "dots", "rings", "mark", "words"])
      this[name] = doc.get_model_by_name(name)
    this.matches = []
    this.color = -1
  }

  async load() {
    const {facts} = this
    this.x = await unpack(facts.x)
    this.y = await unpack(facts.y)
    for (const column of facts.columns) column.values = await unpack(column.values)
    if (facts.image) facts.image.pixels = await unpack(facts.image.pixels)
    this.extent = [this.x, this.y].map((values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)],
      [Infinity, -Infinity]))
    this.dress(document.documentElement.dataset.theme)
    this.paint(facts.color)
  }

  // The window on the map, with equal axes ------------------------------------------------------------------------------

  show([left, right], [low, high], home) {
    const {inner_width: across, inner_height: up, x_range, y_range} = this.plot
    if (!(across > 0 && up > 0)) return
    this.unit = Math.max((right - left) / across, (high - low) / up) * 1.08 || 1 / across // of the map, per pixel
    const [x, y] = [(left + right) / 2, (low + high) / 2]
    const [half, rise] = [this.unit * across / 2, this.unit * up / 2]
    x_range.setv({start: x - half, end: x + half})
    y_range.setv({start: y - rise, end: y + rise})
    if (home) {
      x_range.setv({reset_start: x - half, reset_end: x + half})
      y_range.setv({reset_start: y - rise, reset_end: y + rise})
    }
  }

  home() { this.show(...this.extent, true) }

  zoom(rows) {
    const extent = (values) => rows.reduce(([a, b], i) => [Math.min(a, values[i]), Math.max(b, values[i])],
      [Infinity, -Infinity])
    const least = 0.02 * Math.max(...this.extent.map(([a, b]) => b - a))
    const wide = ([a, b]) => [Math.min(a, (a + b - least) / 2), Math.max(b, (a + b + least) / 2)]
    this.show(wide(extent(this.x)), wide(extent(this.y)), false)
  }

  // Colours -------------------------------------------------------------------------------------------------------------

  offer_colors() {
    const select = element("color")
    add(select, "option", "one colour", {value: -1})
    this.facts.columns.forEach((column, c) => { if (column.colored) add(select, "option", column.name, {value: c}) })
    select.value = this.facts.color
    select.addEventListener("change", () => this.paint(Number(select.value)))
  }

  palette() {
    const theme = this.facts.themes[this.theme]
    const column = this.facts.columns[this.color]
    if (!column) return [theme.colors[0]]
    return column.kind === "class" ? column.shades.map((shade) => theme.colors[shade]) : theme.ramp
  }

  paint(c) {
    this.color = c
    const column = this.facts.columns[c]
    const classes = column?.kind === "class"
    const [low, high] = classes ? [-0.5, column.names.length - 0.5] : column ? [column.low, column.high] : [-0.5, 0.5]
    this.shade(low, high, classes)
    this.points.data = {x: this.x, y: this.y, code: column ? column.values : new Uint8Array(this.x.length)}
    this.name()
  }

  shade(low, high, classes) {
    const {missing} = this.facts.themes[this.theme]
    this.mapper.setv({palette: this.palette(), low, high, nan_color: missing, low_color: classes ? missing : null})
    this.list()
  }

  list() {
    const column = this.facts.columns[this.color]
    const legend = element("legend"), scale = element("scale"), colors = this.palette()
    legend.replaceChildren()
    scale.hidden = column?.kind !== "number"
    if (column?.kind === "number") {
      scale.querySelector(".bar").style.background = `linear-gradient(to right, ${colors.join(", ")})`
      const ends = scale.querySelectorAll(".ends span")
      ends[0].textContent = this.written(column, column.low)
      ends[1].textContent = this.written(column, column.high)
    }
    if (column?.kind !== "class") return
    const sizes = new Uint32Array(column.names.length)
    for (const code of column.values) if (code >= 0) sizes[code]++
    column.names.slice(0, LISTED).forEach((name, code) => {
      const button = add(add(legend, "li"), "button", "", {type: "button", title: "select this class"})
      add(button, "span", "", {className: "dot"}).style.background = colors[code]
      add(button, "span", name, {className: "name"})
      add(button, "span", sizes[code].toLocaleString("en"), {className: "soft"})
      button.addEventListener("click", () => this.select(this.rows((i) => column.values[i] === code)))
    })
    const more = column.names.length - LISTED
    if (more > 0) add(legend, "li", `and ${more} more`, {className: "soft"})
  }

  name() {
    const column = this.facts.columns[this.color]
    const known = column?.kind === "class" && column.names.length <= NAMED
    element("naming").hidden = !known
    const shown = known && element("names").checked
    const places = shown ? column.names.map((name, i) => [name, ...column.hearts[i]]).filter(([, x]) => x !== null) : []
    this.names.data = {text: places.map(([t]) => t), x: places.map(([, x]) => x), y: places.map(([, , y]) => y)}
  }

  dress(key) {
    this.theme = key
    const {paper, ink, missing} = this.facts.themes[key]
    document.documentElement.dataset.theme = key
    element("theme").textContent = key === "dark" ? "light" : "dark"
    element("theme").setAttribute("aria-pressed", key === "dark")
    this.plot.setv({background_fill_color: paper, border_fill_color: paper, outline_line_color: missing})
    for (const renderer of [this.rings, this.mark]) renderer.glyph.line_color = {value: ink}
    this.words.glyph.setv({text_color: {value: ink}, background_fill_color: {value: paper}})
    const {low, high} = this.mapper
    this.shade(low, high, this.facts.columns[this.color]?.kind === "class")
  }

  // One point -----------------------------------------------------------------------------------------------------------

  nearest(x, y) {
    const {x_range, inner_width} = this.plot
    const reach = REACH * (x_range.end - x_range.start) / inner_width
    let found = -1, least = reach ** 2
    for (let i = 0; i < this.x.length; i++) {
      const d2 = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2
      if (d2 <= least) [found, least] = [i, d2]
    }
    return found
  }

  written(column, value) {
    if (column.kind === "class") return value < 0 ? "" : column.names[value]
    return Number.isNaN(value) ? "" : column.whole ? String(value) : String(Number(value.toPrecision(5)))
  }

  tell(row, left, top) {
    const tip = element("tip")
    tip.hidden = row < 0
    this.over.data = {x: row < 0 ? [] : [this.x[row]], y: row < 0 ? [] : [this.y[row]]}
    if (row < 0) return
    tip.dataset.row = row
    tip.replaceChildren()
    if (this.facts.image) this.draw_image(tip, row)
    const table = add(tip, "table")
    const told = this.facts.columns.map((column) => [column.name, this.written(column, column.values[row])])
    for (const [name, value] of [["row", String(row)], ...told]) {
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

  select(rows) { this.points.selected.indices = rows }

  chosen() {
    const rows = this.points.selected.indices
    element("selected").textContent = rows.length ? count(rows.length, "point") : "no points"
    for (const id of ["export", "clear"]) element(id).disabled = !rows.length
  }

  search(text) {
    const wanted = text.trim().toLowerCase()
    const tests = this.facts.columns.map((column) => {
      if (column.kind !== "class") return (i) => this.written(column, column.values[i]) === wanted
      const fits = column.names.map((name) => name.toLowerCase().includes(wanted))
      return (i) => fits[column.values[i]]
    })
    this.matches = wanted ? this.rows((i) => String(i) === wanted || tests.some((test) => test(i))) : []
    element("matches").textContent = wanted ? `${count(this.matches.length, "point")} found` : ""
    for (const id of ["zoom", "take"]) element(id).disabled = !this.matches.length
    this.found.data = {x: this.matches.map((i) => this.x[i]), y: this.matches.map((i) => this.y[i])}
  }

  csv() {
    const quoted = (text) => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
    const digits = (value) => Number.isNaN(value) ? "" : String(Number(value.toPrecision(7))) // what a float32 holds
    const {columns} = this.facts
    const lines = [["row", "x", "y", ...columns.map((column) => column.name)]]
    for (const i of [...this.points.selected.indices].sort((a, b) => a - b)) {
      const values = columns.map((column) => column.kind === "class" || column.whole
        ? this.written(column, column.values[i]) : digits(column.values[i]))
      lines.push([String(i), digits(this.x[i]), digits(this.y[i]), ...values])
    }
    return lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n"
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
    let known = {across: plot.inner_width, up: plot.inner_height}
    const resized = () => {
      const {inner_width: across, inner_height: up} = plot
      if (!(across > 0 && up > 0) || (across === known.across && up === known.up)) return
      known = {across, up}
      this.home()
    }
    for (const property of [plot.properties.inner_width, plot.properties.inner_height])
      property.change.connect(resized)
    this.points.selected.properties.indices.change.connect(() => this.chosen())
    let waiting = null
    document.addEventListener("over", ({detail}) => {
      if (waiting === null) requestAnimationFrame(() => {
        const [x, y, left, top] = waiting
        waiting = null
        const corner = element("map").getBoundingClientRect()
        this.tell(x === null ? -1 : this.nearest(x, y), corner.left + left, corner.top + top)
      })
      waiting = detail
    })
    let timer = 0
    element("search").addEventListener("input", ({target}) => {
      clearTimeout(timer)
      timer = setTimeout(() => this.search(target.value), PAUSE)
    })
    element("zoom").addEventListener("click", () => this.zoom(this.matches))
    element("take").addEventListener("click", () => this.select(this.matches))
    element("export").addEventListener("click", () => this.save())
    element("clear").addEventListener("click", () => this.select([]))
    element("names").addEventListener("change", () => this.name())
    element("theme").addEventListener("click", () => this.dress(this.theme === "dark" ? "light" : "dark"))
  }
}

async function start() {
  await Bokeh.embed.embed_item(content("map-json"), "map")
  const page = new Page(content("facts"), Bokeh.documents[0])
  await page.load()
  page.offer_colors()
  page.listen()
  page.home()
  document.body.dataset.ready = "yes"
}

start()
