// The points of the widget on a canvas, and above it the names of classes, the lasso and a mark at the point under the mouse.
"use strict"

const SHOWN_NAMES = 40 // maximum number of classes that are named on the map
const SLOW = 100 // milliseconds of a frame, above which fewer points are drawn until the map rests
const FEW = 10000, REST = 1000 // points that are drawn meanwhile; milliseconds
const DOT_GROWTH = 0.4, MAX_DOT_GROWTH = 3 // dots grow with this power of the magnification, up to this factor
const SMALLEST_ZOOM = 0.02 // of the map: what `zoom_to` shows at least

function add_svg(parent, tag, attributes = {}) {
  const child = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) child.setAttribute(name, value)
  parent.append(child)
  return child
}

class MapCanvas {
  constructor(parent, dot_size) {
    Object.assign(this, {parent, dot_size, n: 0, points: new Float32Array(0), codes: new Uint8Array(0), moved: false})
    Object.assign(this, {selection: new Uint32Array(0), found: new Uint32Array(0), palette: ["#000000"], marks: [], names: []})
    this.view = new Viewport()
    this.make_dots()
    this.overlay = add_svg(parent, "svg", {class: "eq-overlay", "aria-hidden": "true"})
    this.labels = add_svg(this.overlay, "g")
    this.outline = add_svg(this.overlay, "path", {class: "eq-outline"})
    this.mark = add_svg(this.overlay, "circle", {class: "eq-mark", r: 7, visibility: "hidden"})
    this.on_view = () => {} // called after the view has changed
    this.resizer = new ResizeObserver(() => this.resize())
    this.resizer.observe(parent)
  }

  // A browser keeps only some drawings, and drops the oldest: it is then made anew.
  make_dots() {
    const canvas = document.createElement("canvas")
    if (this.dots) this.dots.canvas.replaceWith(canvas)
    else this.parent.append(canvas)
    this.dots = new Dots(canvas)
    canvas.addEventListener("webglcontextlost", () => { this.lost = true })
    this.lost = this.has_marks = false
  }

  restore() {
    if (!this.lost) return
    this.make_dots()
    this.upload()
  }

  remove() {
    clearTimeout(this.resting)
    this.resizer.disconnect()
    this.dots.gl.getExtension("WEBGL_lose_context")?.loseContext()
  }

  upload() {
    this.dots.set("at", this.points)
    this.dots.set_rows("found", this.n ? this.found : [])
    this.paint()
  }

  // The map ---------------------------------------------------------------------------------------------------------

  set_points(points) {
    if (this.n !== points.length / 2) this.scrambled = scrambled(points.length / 2)
    this.points = points
    this.n = points.length / 2
    this.extent = [0, 1].map((axis) => {
      let low = Infinity, high = -Infinity
      for (let k = axis; k < points.length; k += 2) {
        if (points[k] < low) low = points[k]
        if (points[k] > high) high = points[k]
      }
      return [low, high]
    })
    if (!this.moved) this.home()
    this.upload()
  }

  // Colours and marks of the points: indices into `palette` and `marks`. Points without a mark are disks.
  set_colors(codes, palette, marks) {
    Object.assign(this, {codes, palette, marks})
    this.paint()
  }

  set_selection(rows) {
    this.selection = rows
    this.paint()
  }

  set_found(rows) {
    this.found = rows
    if (!this.n) return
    this.dots.set_rows("found", rows)
    this.draw()
  }

  // Colour the points. The last colour of the palette is that of missing values, which are drawn first; the selection
  // is drawn last, and the other points are dim.
  paint() {
    if (!this.n || this.codes.length !== this.n || this.lost) return
    const {n, codes, palette, selection} = this, last = palette.length - 1, dimmed = selection.length > 0
    const [full, dim] = [OPACITY, FAINT].map((alpha) =>
      Uint32Array.from(palette, (color) => { const [r, g, b] = rgb(color); return (alpha << 24 | b << 16 | g << 8 | r) >>> 0 }))
    const level = new Uint8Array(n), colors = new Uint32Array(n), order = new Uint32Array(n)
    for (const row of selection) level[row] = 2
    for (let i = 0; i < n; i++) {
      const code = Math.min(codes[i], last)
      colors[i] = dimmed && level[i] < 2 ? dim[code] : full[code]
      if (!level[i] && (code < last || !last)) level[i] = 1
    }
    if (this.marks.some(Boolean) || this.has_marks) {
      this.has_marks = true
      this.dots.set("mark", Uint8Array.from(codes, (code) => this.marks[code] ?? 0))
    }
    let k = 0
    for (const wanted of [0, 1, 2]) for (const row of this.scrambled) if (level[row] === wanted) order[k++] = row
    this.dots.set("color", new Uint8Array(colors.buffer))
    this.dots.set_rows("order", order)
    this.draw()
  }

  // The view --------------------------------------------------------------------------------------------------------

  resize() {
    const {clientWidth, clientHeight} = this.parent
    if (!clientWidth || !clientHeight) return
    this.view.resize(clientWidth, clientHeight)
    if (!this.moved) this.home()
    this.draw()
  }

  home() {
    this.moved = false
    if (!this.n) return
    this.view.show(this.extent)
    this.view.home_unit = this.view.unit
    this.draw()
  }

  move(change) {
    change(this.view)
    this.moved = true
    this.draw()
  }

  zoom_to(rows) {
    const smallest = SMALLEST_ZOOM * Math.max(...this.extent.map(([low, high]) => high - low))
    const region = [0, 1].map((axis) => {
      let low = Infinity, high = -Infinity
      for (const row of rows) {
        low = Math.min(low, this.points[2 * row + axis])
        high = Math.max(high, this.points[2 * row + axis])
      }
      return [Math.min(low, (low + high - smallest) / 2), Math.max(high, (low + high + smallest) / 2)]
    })
    this.move((view) => view.show(region))
  }

  // Draw before the next frame: all points, or only some where all of them took long, and all once the map rests.
  // Without a graphics card a frame can take seconds, and the mouse, the keyboard and Python wait for it.
  draw(all = false) {
    clearTimeout(this.resting)
    this.all ||= all
    if (this.pending) return
    this.pending = true
    requestAnimationFrame((start) => {
      const some = this.slow && !this.all && this.n > FEW
      this.pending = this.all = false
      this.draw_now(some ? FEW : Infinity)
      this.on_view()
      if (some) this.resting = setTimeout(() => this.draw(true), REST)
      else requestAnimationFrame((end) => { this.slow = end - start > SLOW })
    })
  }

  draw_now(most = Infinity) {
    if (!this.n || this.lost || !this.theme) return
    const {view} = this
    const size = this.dot_size * Math.min(view.magnification ** DOT_GROWTH, MAX_DOT_GROWTH)
    this.dots.draw({low: view.low, span: view.span, size, ring: opaque(this.theme.text), background: opaque(this.theme.background), most})
    this.draw_names()
  }

  // Write the names that do not overlap an earlier one; zooming in shows more.
  draw_names() {
    const boxes = []
    this.labels.replaceChildren()
    for (const [text, x, y] of this.names.slice(0, SHOWN_NAMES)) {
      const [left, top] = this.view.to_screen(x, y), [w, h] = [4 * text.length + 4, 9]
      if (left < 0 || top < 0 || left > this.view.width || top > this.view.height) continue
      if (boxes.some(([a, b, c]) => Math.abs(a - left) < w + c && Math.abs(b - top) < 2 * h)) continue
      boxes.push([left, top, w])
      const inside = Math.min(Math.max(left, w), this.view.width - w)
      add_svg(this.labels, "text", {x: inside, y: top, class: "eq-name"}).textContent = text
    }
  }

  // Return a canvas with the map as it is seen.
  picture() {
    this.draw_now()
    const {canvas} = this.dots, target = document.createElement("canvas")
    Object.assign(target, {width: canvas.width, height: canvas.height})
    const paper = target.getContext("2d"), scale = canvas.width / this.view.width
    paper.fillStyle = this.theme.background
    paper.fillRect(0, 0, target.width, target.height)
    paper.drawImage(canvas, 0, 0)
    paper.scale(scale, scale)
    Object.assign(paper, {font: "bold 13px sans-serif", textAlign: "center", textBaseline: "middle", lineWidth: 4, lineJoin: "round"})
    for (const label of this.labels.children) {
      const at = [label.textContent, Number(label.getAttribute("x")), Number(label.getAttribute("y"))]
      paper.strokeStyle = this.theme.background
      paper.strokeText(...at)
      paper.fillStyle = this.theme.text
      paper.fillText(...at)
    }
    return target
  }

  // Points ----------------------------------------------------------------------------------------------------------

  // Return the row of the point under the position [left, top] of the screen, −1 for none.
  nearest(left, top) {
    const [x, y] = this.view.to_map(left, top), {points, n} = this
    let found = -1, smallest = (REACH * this.view.unit) ** 2
    for (let i = 0; i < n; i++) {
      const d2 = (points[2 * i] - x) ** 2 + (points[2 * i + 1] - y) ** 2
      if (d2 <= smallest) [found, smallest] = [i, d2]
    }
    return found
  }

  // Show a mark at a row, or none if the row is −1.
  mark_row(row) {
    this.mark.setAttribute("visibility", row < 0 ? "hidden" : "visible")
    if (row < 0) return
    const [left, top] = this.view.to_screen(this.points[2 * row], this.points[2 * row + 1])
    this.mark.setAttribute("cx", left)
    this.mark.setAttribute("cy", top)
  }

  // Draw a polygon of the screen while it is drawn with the mouse; none if it is empty.
  draw_outline(corners) {
    this.outline.setAttribute("d", corners.length ? `M${corners.map((corner) => corner.join(",")).join("L")}Z` : "")
  }

  // Return the rows inside a polygon of the screen, ascending (even-odd rule).
  enclosed(corners) {
    const polygon = corners.map(([left, top]) => this.view.to_map(left, top))
    const xs = Float64Array.from(polygon, ([x]) => x), ys = Float64Array.from(polygon, ([, y]) => y)
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)]
    const rows = new Uint32Array(this.n)
    let found = 0
    for (let i = 0; i < this.n; i++) {
      const x = this.points[2 * i], y = this.points[2 * i + 1]
      if (x < left || x > right || y < low || y > high) continue
      let odd = false // number of edges crossed to the right
      for (let j = 0, k = xs.length - 1; j < xs.length; k = j++)
        if ((ys[j] > y) !== (ys[k] > y) && x < (xs[k] - xs[j]) * (y - ys[j]) / (ys[k] - ys[j]) + xs[j]) odd = !odd
      if (odd) rows[found++] = i
    }
    return rows.slice(0, found)
  }
}
