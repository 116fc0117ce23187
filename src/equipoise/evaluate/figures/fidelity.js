// Script of evaluate/figures/fidelity.py: embeds the plots, colours the points, and shows a point with its neighbours.
"use strict"

const REACH = 16 // maximum distance in pixels between a click and the point it selects

class Page {
  constructor(facts, doc) {
    this.facts = facts
    for (const name of ["points", "others", "copies", "lists", "false", "missing", "kept", "lines", "chosen"])
      this[name] = doc.get_model_by_name(name)
    this.mapper = doc.get_model_by_name("mapper")
    this.plot = doc.get_model_by_name("plot")
    // The position of each row in the map, and its index in the neighbour lists (−1 if it was not measured).
    this.x = new Float32Array(facts.n)
    this.y = new Float32Array(facts.n)
    this.label = new Int32Array(facts.n).fill(-1)
    this.list_index = new Int32Array(facts.n).fill(-1)
    for (const source of [this.others, this.points]) {
      const {row, x, y, label} = source.data
      for (let i = 0; i < row.length; i++) {
        this.x[row[i]] = x[i]
        this.y[row[i]] = y[i]
        this.label[row[i]] = label[i]
        if (source === this.points) this.list_index[row[i]] = i
      }
    }
  }

  // Colours -----------------------------------------------------------------------------------------------------------

  offer_shadings() {
    for (const [key, shading] of Object.entries(this.facts.shadings)) {
      const label = add(element("shading"), "label")
      const input = add(label, "input", "", {type: "radio", name: "shading", value: key})
      label.append(" " + shading.title)
      input.addEventListener("change", () => this.shade(key))
    }
    element("shading").querySelector("input").checked = true
    this.shade(Object.keys(this.facts.shadings)[0])
  }

  shade(key) {
    const {colors, names, shares, hint} = this.facts.shadings[key]
    element("hint").textContent = hint
    const {data} = this.points
    this.mapper.setv({palette: colors, low: -0.5, high: colors.length - 0.5})
    this.points.data = {...data, code: data[key + "_code"]}
    const known = key === "class" // known for every point, measured or not
    const {label} = this.others.data
    this.others.data = {...this.others.data, code: known ? label : new Int8Array(label.length).fill(-1)}
    const {row: rows, label: labels} = this.copies.data
    const code = Int32Array.from(rows, (row, i) => {
      const index = this.list_index[row]
      return index >= 0 ? data[key + "_code"][index] : known ? labels[i] : -1
    })
    this.copies.data = {...this.copies.data, code}
    const legend = element("legend")
    legend.replaceChildren()
    for (let i = 0; i < names.length && i < 24; i++) {
      const item = add(legend, "li")
      add(item, "span", "", {className: "dot"}).style.background = colors[i]
      item.append(`${names[i]} `)
      add(item, "span", `${(100 * shares[i]).toFixed(shares[i] < 0.0995 ? 1 : 0)}%`, {className: "muted"})
    }
    if (names.length > 24) add(legend, "li", `and ${names.length - 24} more`, {className: "muted"})
    if (this.facts.unmeasured && !known) {
      const item = add(legend, "li")
      add(item, "span", "", {className: "dot"}).style.background = this.facts.unmeasured
      item.append("not measured")
    }
  }

  // One point ---------------------------------------------------------------------------------------------------------

  nearest(x, y) {
    const {x_range, y_range} = this.plot
    const across = this.facts.pixels / (x_range.end - x_range.start)
    const up = this.facts.pixels / (y_range.end - y_range.start)
    const rows = this.points.data.row
    let found = -1, smallest = REACH ** 2
    for (const row of rows) {
      const d2 = ((this.x[row] - x) * across) ** 2 + ((this.y[row] - y) * up) ** 2
      if (d2 <= smallest) [found, smallest] = [row, d2]
    }
    return found
  }

  choose(row) {
    const i = row >= 0 && row < this.facts.n ? this.list_index[row] : -1
    element("row").value = row >= 0 ? row : ""
    this.points.selected.indices = i < 0 ? [] : [i]
    for (const [id, shown] of [["reading", row < 0], ["chosen", row >= 0]]) element(id).hidden = !shown
    if (i < 0) return this.clear(row)
    const {k} = this.facts
    const list = (name) => Array.from(this.lists.data[name].slice(i * k, (i + 1) * k))
    const [in_map, in_data, data_rank, map_rank] = ["in_map", "in_data", "data_rank", "map_rank"].map(list)
    const all = {
      false: in_map.map((row, t) => ({row, map: t + 1, data: data_rank[t]})).filter((other) => other.data > k),
      missing: in_data.map((row, t) => ({row, data: t + 1, map: map_rank[t]})).filter((other) => other.map > k),
      kept: in_map.map((row, t) => ({row, map: t + 1, data: data_rank[t]})).filter((other) => other.data <= k),
    }
    all.false.sort((a, b) => b.data - a.data)
    all.missing.sort((a, b) => b.map - a.map)
    this.shown = [{row}, ...all.false, ...all.missing, ...all.kept].map((other) => other.row)
    this.draw(row, all)
    this.describe(row, i, all)
  }

  zoom() {
    const extent = (values) => [Math.min(...values), Math.max(...values)]
    const [left, right] = extent(this.shown.map((row) => this.x[row]))
    const [low, high] = extent(this.shown.map((row) => this.y[row]))
    const half = 0.6 * Math.max(right - left, high - low)
    this.plot.x_range.setv({start: (left + right) / 2 - half, end: (left + right) / 2 + half})
    this.plot.y_range.setv({start: (low + high) / 2 - half, end: (low + high) / 2 + half})
  }

  clear(row) {
    this.draw(-1, {false: [], missing: [], kept: []})
    const {n, measured} = this.facts
    const text = row < n ? `Row ${row} is not among the ${measured} measured rows.` : `Rows go from 0 to ${n - 1}.`
    element("zoom").hidden = true
    element("one").replaceChildren()
    add(element("one"), "p", text)
  }

  draw(row, all) {
    const at = (others) => ({x: others.map((o) => this.x[o.row]), y: others.map((o) => this.y[o.row])})
    for (const kind of ["false", "missing", "kept"]) this[kind].data = at(all[kind])
    this.chosen.data = at(row < 0 ? [] : [{row}])
    const lines = ["false", "missing"].flatMap((kind) => all[kind].flatMap((other) =>
      this.segments(row, other.row).map((ends) => [...ends, this.facts.colors[kind]])))
    const [x0, y0, x1, y1, color] = [0, 1, 2, 3, 4].map((c) => lines.map((line) => line[c]))
    this.lines.data = {x0, y0, x1, y1, color}
  }

  // Return the segments [x0, y0, x1, y1] between two rows: one, or on a torus the two parts of a line across an edge.
  segments(a, b) {
    const start = [this.x[a], this.y[a]], end = [this.x[b], this.y[b]]
    const shift = (this.facts.period ?? [Infinity, Infinity]).map((period, c) =>
      Number.isFinite(period) ? period * Math.round((end[c] - start[c]) / period) : 0)
    const line = [...start, ...end.map((value, c) => value - shift[c])]
    return shift[0] || shift[1] ? [line, [...start.map((value, c) => value + shift[c]), ...end]] : [line]
  }

  name(row) {
    return this.label[row] < 0 ? "" : this.facts.classes[this.label[row]]
  }

  describe(row, i, all) {
    const {k} = this.facts
    const one = element("one")
    element("zoom").hidden = false
    one.replaceChildren()
    const value = (name) => this.points.data[name][i]
    const head = add(one, "p", "", {id: "head"})
    add(head, "b", `Row ${row}` + (this.name(row) && `, class ${this.name(row)}`))
    head.append(`: trust ${value("trust").toFixed(3)}, continuity ${value("continuity").toFixed(3)}, `
      + `${all.kept.length} of ${k} neighbours preserved`)
    const lists = add(one, "div", "", {className: "lists"})
    this.table(lists, "false", "false neighbours: near in the map but not in the data", all.false)
    this.table(lists, "missing", "missing neighbours: near in the data but not in the map", all.missing)
    this.table(lists, "kept", "neighbours in both", all.kept)
  }

  table(parent, kind, title, others) {
    add(parent, "h3", `${others.length} ${title}`, {className: kind})
    if (!others.length) return
    const table = add(parent, "table", "", {className: kind})
    const classes = this.facts.classes.length > 0
    const head = add(add(table, "thead"), "tr")
    for (const text of ["row", ...(classes ? ["class"] : []), "rank in the map", "in the data"]) add(head, "th", text)
    const body = add(table, "tbody")
    for (const other of others) {
      const line = add(body, "tr")
      const link = add(add(line, "th"), "a", String(other.row), {href: "#map"})
      link.addEventListener("click", (event) => { event.preventDefault(); this.choose(other.row) })
      if (classes) add(line, "td", this.name(other.row))
      for (const rank of [other.map, other.data]) add(line, "td", rank.toLocaleString("en"))
    }
  }
}

async function start() {
  for (const id of ["map", "shepard", "recall"]) await Bokeh.embed.embed_item(content(`${id}-json`), id)
  const doc = Bokeh.documents.find((document) => document.get_model_by_name("points") != null)
  const page = new Page(content("facts"), doc)
  page.offer_shadings()
  page.plot.on_event("tap", ({x, y}) => page.choose(page.nearest(x, y)))
  element("row").addEventListener("change", ({target}) => page.choose(target.value === "" ? -1 : Number(target.value)))
  element("back").addEventListener("click", () => page.choose(-1))
  element("zoom").addEventListener("click", () => page.zoom())
  document.body.dataset.ready = "yes"
}

start()
