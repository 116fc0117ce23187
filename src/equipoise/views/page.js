// The page of views/page.py: unpacks the points, colours them, tells about one under the mouse, finds and saves some.
"use strict"

const REACH = 12 // pixels between the mouse and the point that it means, at most
const NAMED = 40 // classes that are named on the map, at most
const LISTED = 200 // classes in the legend, at most
const FAINT = 30 // of 255, how much a point covers the paper that is not selected while others are
const GROWTH = 0.4, LARGEST = 3 // a dot grows by this power of the magnification, up to this factor
const PAUSE = 150 // milliseconds without a key until the search begins

async function unpack({type, data}) {
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
    for (const name of ["names", "words"]) this[name] = this.plot.document.get_model_by_name(name)
    this.dots = new Dots(element("dots"))
    this.matches = []
    this.selection = []
  }

  async load() {
    const {facts} = this
    this.x = await unpack(facts.x)
    this.y = await unpack(facts.y)
    for (const column of facts.columns) column.values = await unpack(column.values)
    if (facts.image) facts.image.pixels = await unpack(facts.image.pixels)
    const all = this.rows(() => true)
    this.extent = [this.x, this.y].map((values) => this.range(values, all))
    const places = new Float32Array(2 * all.length)
    for (const i of all) [places[2 * i], places[2 * i + 1]] = [this.x[i], this.y[i]]
    this.dots.set("at", places)
    this.color = facts.color
    this.dress(document.documentElement.dataset.theme)
    this.name()
    this.select([])
  }

  // The window on the map, with equal axes ------------------------------------------------------------------------------

  range(values, rows) {
    return rows.reduce(([a, b], i) => [Math.min(a, values[i]), Math.max(b, values[i])], [Infinity, -Infinity])
  }

  home() {
    show(this.view, ...this.extent)
    this.broad = this.plot.x_range.end - this.plot.x_range.start
  }

  zoom(rows) {
    const least = 0.02 * Math.max(...this.extent.map(([a, b]) => b - a))
    const wide = ([a, b]) => [Math.min(a, (a + b - least) / 2), Math.max(b, (a + b + least) / 2)]
    show(this.view, wide(this.range(this.x, rows)), wide(this.range(this.y, rows)))
  }

  draw() {
    if (this.asked) return
    this.asked = true
    requestAnimationFrame(() => {
      this.asked = false
      this.name()
      const {ink, paper} = this.facts.themes[this.theme]
      const window = shown(this.plot)
      const closer = Math.max(this.broad / window.span[0], 1)
      const size = this.facts.size * Math.min(closer ** GROWTH, LARGEST)
      this.dots.draw({...window, size, ink: solid(ink), paper: solid(paper)})
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
      this.list()
      this.name()
    })
  }

  palette() {
    const theme = this.facts.themes[this.theme]
    const column = this.facts.columns[this.color]
    if (!column) return [theme.colors[0]]
    return column.kind === "class" ? column.shades.map((shade) => theme.colors[shade]) : theme.ramp
  }

  paint() {
    const {missing} = this.facts.themes[this.theme]
    const column = this.facts.columns[this.color]
    const colors = [...this.palette(), missing].map(rgb), last = colors.length - 1
    const place = !column ? () => 0
      : column.kind === "class" ? (value) => value < 0 ? last : value
      : (value) => Number.isNaN(value) ? last
        : Math.min(Math.max(Math.floor(last * (value - column.low) / (column.high - column.low)), 0), last - 1)
    const bytes = new Uint8Array(4 * this.x.length)
    const level = new Uint8Array(this.x.length) // what is missing lies at the bottom, what is chosen on top
    for (const i of this.selection) level[i] = 2
    for (let i = 0; i < level.length; i++) {
      const color = place(column?.values[i])
      bytes.set(colors[color], 4 * i)
      bytes[4 * i + 3] = this.selection.length && !level[i] ? FAINT : 230
      if (!level[i] && color < last) level[i] = 1
    }
    const order = scattered(this.x.length)
    this.dots.list("order", [0, 1, 2].flatMap((wanted) => [...order.filter((i) => level[i] === wanted)]))
    this.dots.set("color", bytes)
    this.draw()
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
    const places = shown ? this.apart(column.names.map((text, i) => [text, ...column.hearts[i]])) : []
    const data = {text: places.map(([text]) => text), x: places.map(([, x]) => x), y: places.map(([, , y]) => y)}
    if (JSON.stringify(data) !== JSON.stringify(this.names.data)) this.names.data = data
  }

  // The names that do not cover an earlier one, as the window is now; closer up there are more of them.
  apart(names) {
    const {x_scale, y_scale} = this.view.frame
    const boxes = []
    return names.filter(([text, x, y]) => {
      if (x === null) return false
      const box = [x_scale.compute(x), y_scale.compute(y), 4.5 * text.length + 4, 10] // middle and half the size
      const free = boxes.every(([a, b, w, h]) => Math.abs(a - box[0]) >= w + box[2] || Math.abs(b - box[1]) >= h + box[3])
      if (free) boxes.push(box)
      return free
    })
  }

  dress(key) {
    this.theme = key
    const {paper, ink, missing} = this.facts.themes[key]
    document.documentElement.dataset.theme = key
    element("theme").textContent = key === "dark" ? "light page" : "dark page"
    this.plot.outline_line_color = missing
    this.words.glyph.setv({text_color: {value: ink}, background_fill_color: {value: paper}})
    this.paint()
    this.list()
  }

  // One point -----------------------------------------------------------------------------------------------------------

  nearest(x, y) {
    const {x_range} = this.plot
    const reach = REACH * (x_range.end - x_range.start) / this.view.frame.bbox.width
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
    const tip = element("tip"), mark = element("mark")
    tip.hidden = mark.hidden = row < 0
    if (row < 0) return
    const {x_scale, y_scale} = this.view.frame
    const corner = this.view.el.getBoundingClientRect()
    mark.style.left = `${corner.left + x_scale.compute(this.x[row])}px`
    mark.style.top = `${corner.top + y_scale.compute(this.y[row])}px`
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

  select(rows) {
    this.selection = rows
    element("selected").textContent = rows.length ? count(rows.length, "point") : "no points"
    for (const id of ["export", "clear"]) element(id).disabled = !rows.length
    this.paint()
  }

  // What lies in a lasso or in a box; with Shift, added to what is selected.
  enclosed({type, x, y, x0, x1, y0, y1}, more) {
    const rows = type === "poly" ? this.rows(this.inside(Array.from(x), Array.from(y)))
      : this.rows((i) => this.x[i] >= x0 && this.x[i] <= x1 && this.y[i] >= y0 && this.y[i] <= y1)
    this.select(more ? [...new Set([...this.selection, ...rows])] : rows)
  }

  inside(x, y) {
    const [left, right] = [Math.min(...x), Math.max(...x)], [low, high] = [Math.min(...y), Math.max(...y)]
    return (i) => {
      const [a, b] = [this.x[i], this.y[i]]
      if (a < left || a > right || b < low || b > high) return false
      let odd = false // crossings to the right
      for (let j = 0, k = x.length - 1; j < x.length; k = j++)
        if ((y[j] > b) !== (y[k] > b) && a < (x[k] - x[j]) * (b - y[j]) / (y[k] - y[j]) + x[j]) odd = !odd
      return odd
    }
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
    this.dots.list("found", this.matches)
    this.draw()
  }

  csv() {
    const quoted = (text) => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
    const digits = (value) => Number.isNaN(value) ? "" : String(Number(value.toPrecision(7))) // what a float32 holds
    const {columns} = this.facts
    const lines = [["row", "x", "y", ...columns.map((column) => column.name)]]
    for (const i of [...this.selection].sort((a, b) => a - b)) {
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
    on_resize(this.view, () => {
      lay(element("dots"), this.view)
      this.home()
      this.draw()
    })
    for (const range of [plot.x_range, plot.y_range]) range.change.connect(() => this.draw())
    let shift = false
    for (const event of ["pointerdown", "pointerup"])
      addEventListener(event, ({shiftKey}) => { shift = shiftKey }, {capture: true})
    document.addEventListener("lasso", ({detail}) => this.enclosed(detail, shift))
    let waiting = null
    document.addEventListener("over", ({detail}) => {
      if (waiting === null) requestAnimationFrame(() => {
        const [x, y, left, top] = waiting
        waiting = null
        const corner = this.view.el.getBoundingClientRect()
        this.tell(x === null ? -1 : this.nearest(x, y), corner.left + left, corner.top + top)
      })
      waiting = detail
    })
    let timer = 0
    element("search").addEventListener("input", ({target}) => {
      clearTimeout(timer)
      timer = setTimeout(() => this.search(target.value), PAUSE)
    })
    element("whole").addEventListener("click", () => this.home())
    element("zoom").addEventListener("click", () => this.zoom(this.matches))
    element("take").addEventListener("click", () => this.select(this.matches))
    element("export").addEventListener("click", () => this.save())
    element("clear").addEventListener("click", () => this.select([]))
    element("names").addEventListener("change", () => this.name())
    element("theme").addEventListener("click", () => this.dress(this.theme === "dark" ? "light" : "dark"))
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
