// Colours and marks of the points of a page, the legend, and the names of classes on the map.
"use strict"

const MAX_LISTED = 200 // maximum number of classes in the legend; more can be found by their names
const MANY = 12 // classes from which the legend can be searched
const MAX_SOUGHT = 300_000 // points up to which a class whose centre is not visible is named where it is visible

class Colors {
  constructor(page) {
    this.page = page
    this.chosen = page.facts.color
    this.opacity = 1 // of the user
  }

  get column() { return this.page.facts.columns[this.chosen] }
  get theme() { return this.page.facts.themes[this.page.theme] }

  offer() {
    const {facts} = this.page, select = element("color")
    add(select, "option", "one colour", {value: -1})
    facts.columns.forEach((column, c) => { if (column.colored) add(select, "option", column.name, {value: c}) })
    select.value = facts.color
    select.addEventListener("change", () => {
      this.chosen = Number(select.value)
      element("filter").value = ""
      this.paint()
      this.update_legend()
      this.update_names()
    })
    element("filter").addEventListener("input", () => this.list_classes())
  }

  palette() {
    const {column, theme} = this
    if (!column) return [theme.colors[0]]
    return column.kind === "class" ? column.color_indices.map((index) => theme.colors[index]) : theme.ramp
  }

  paint() {
    const {column, page} = this, {x, selection} = page
    const colors = [...this.palette(), this.theme.missing].map(rgb), last = colors.length - 1
    const color_index = !column ? () => 0
      : column.kind === "class" ? (value) => value < 0 ? last : value
      : (value) => Number.isNaN(value) ? last
        : Math.min(Math.max(Math.floor(last * (value - column.low) / (column.high - column.low)), 0), last - 1)
    const bytes = new Uint8Array(4 * x.length), marks = new Uint8Array(x.length)
    const level = new Uint8Array(x.length) // missing values at the bottom, selected points on top
    for (const i of selection) level[i] = 2
    for (let i = 0; i < level.length; i++) {
      const color = color_index(column?.values[i])
      bytes.set(colors[color], 4 * i)
      bytes[4 * i + 3] = this.opacity * (selection.length && !level[i] ? FAINT : OPACITY)
      marks[i] = column?.marks?.[color] ?? 0
      if (!level[i] && color < last) level[i] = 1
    }
    this.level = level
    this.arrange()
    page.dots.set("color", bytes)
    page.dots.set("mark", marks)
    page.draw()
  }

  // Set the order in which the points are drawn: by level and then mixed, or from the back to the front.
  arrange() {
    const {page, level} = this
    if (level === undefined) return
    const order = page.space?.from_back ? page.space.from_back() : scrambled(page.x.length)
    const rows = page.space?.from_back ? order : [0, 1, 2].flatMap((wanted) => [...order.filter((i) => level[i] === wanted)])
    page.dots.set_rows("order", rows)
  }

  // The legend ----------------------------------------------------------------------------------------------------------

  update_legend() {
    const {column} = this, scale = element("scale"), colors = this.palette()
    scale.hidden = column?.kind !== "number"
    element("finding").hidden = !(column?.kind === "class" && column.names.length > MANY)
    if (column?.kind === "number") {
      scale.querySelector(".bar").style.background = `linear-gradient(to right, ${colors.join(", ")})`
      const ends = scale.querySelectorAll(".ends span")
      ends[0].textContent = this.page.format(column, column.low)
      ends[1].textContent = this.page.format(column, column.high)
    }
    this.list_classes()
  }

  // Return the number of points of each class.
  sizes(column) {
    const sizes = new Uint32Array(column.names.length)
    for (const code of column.values) if (code >= 0) sizes[code]++
    return sizes
  }

  // List the classes whose names contain the text in the box above the legend.
  list_classes() {
    const {column} = this, legend = element("legend"), colors = this.palette()
    legend.replaceChildren()
    if (column?.kind !== "class") return
    const wanted = element("filter").value.trim().toLowerCase(), sizes = this.sizes(column)
    const found = [...column.names.keys()].filter((code) => column.names[code].toLowerCase().includes(wanted))
    for (const code of found.slice(0, MAX_LISTED)) {
      const button = add(add(legend, "li"), "button", "", {type: "button", title: "select this class"})
      const dot = add(button, "span", "", {className: "dot"}), outline = MARK_CORNERS[column.marks[code]]
      dot.style.setProperty("--color", colors[code])
      dot.classList.toggle("corners", Boolean(outline))
      if (outline) dot.style.clipPath = `polygon(${outline.map((at) => at.map((c) => `${50 + 32 * c}%`).join(" "))})`
      add(button, "span", column.names[code], {className: "name"})
      add(button, "span", sizes[code].toLocaleString("en"), {className: "muted"})
      button.addEventListener("click", () => this.page.select(this.page.rows((i) => column.values[i] === code)))
    }
    const more = found.length - MAX_LISTED
    if (more > 0) add(legend, "li", `and ${more} more`, {className: "muted"})
    if (!found.length) add(legend, "li", "no class found", {className: "muted"})
  }

  // Names on the map ----------------------------------------------------------------------------------------------------

  update_names() {
    const {column, page} = this
    const nameable = column?.kind === "class"
    element("naming").hidden = !nameable
    const labels = nameable && element("names").checked ? this.without_overlap(this.places(column)) : []
    const data = {text: labels.map(([text]) => text), x: labels.map(([, x]) => x), y: labels.map(([, , y]) => y)}
    if (JSON.stringify(data) !== JSON.stringify(page.names.data)) page.names.data = data
  }

  // Return [name, x, y] for each class that is visible, the largest class first.
  places(column) {
    const {page} = this
    const {low, span} = visible_region(page.plot), offsets = page.space.offsets({low, span})
    const visible = ([x, y]) => x >= low[0] && x <= low[0] + span[0] && y >= low[1] && y <= low[1] + span[1]
    const centers = offsets.length === 1 && !page.facts.disk && page.x.length <= MAX_SOUGHT
      ? this.visible_centers(column, visible) : column.centers
    if (column.sizes === undefined) column.sizes = this.sizes(column)
    const largest_first = [...column.names.keys()].sort((a, b) => column.sizes[b] - column.sizes[a])
    return largest_first.filter((code) => centers[code][0] !== null).flatMap((code) => {
      const [x, y] = centers[code]
      return offsets.map(([a, b]) => [x + a, y + b]).filter(visible).map((at) => [column.names[code], ...at])
    })
  }

  // Return the centres of the classes; where a centre is not visible but other points of the class are, the visible
  // point nearest to their mean.
  visible_centers(column, visible) {
    const {x, y} = this.page, {values, names, centers} = column
    const hidden = centers.map((center) => center[0] !== null && !visible(center))
    if (!hidden.includes(true)) return centers
    const sums = names.map(() => [0, 0, 0]), found = names.map(() => [Infinity, null, null])
    const rows = []
    for (let i = 0; i < x.length; i++) {
      const code = values[i]
      if (code < 0 || !hidden[code] || !visible([x[i], y[i]])) continue
      rows.push(i)
      sums[code][0]++
      sums[code][1] += x[i]
      sums[code][2] += y[i]
    }
    for (const i of rows) {
      const code = values[i], [total, a, b] = sums[code]
      const d2 = (x[i] - a / total) ** 2 + (y[i] - b / total) ** 2
      if (d2 < found[code][0]) found[code] = [d2, x[i], y[i]]
    }
    return centers.map((center, code) => hidden[code] ? found[code].slice(1) : center)
  }

  // Return the names that do not overlap an earlier one at the current zoom; zooming in shows more.
  without_overlap(names) {
    const {x_scale, y_scale} = this.page.view.frame
    const boxes = []
    return names.filter(([text, x, y]) => {
      const box = [x_scale.compute(x), y_scale.compute(y), 4.5 * text.length + 4, 10] // centre and half the size
      const free = boxes.every(([a, b, w, h]) => Math.abs(a - box[0]) >= w + box[2] || Math.abs(b - box[1]) >= h + box[3])
      if (free) boxes.push(box)
      return free
    })
  }
}
