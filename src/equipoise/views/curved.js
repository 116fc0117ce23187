// Curved spaces on a page: a torus repeats itself on all sides, the Poincaré disk can be centred on any point, and a
// globe turns.
"use strict"

const TILES = 4 // a torus is repeated at most this often beyond the first square, in each direction
const GRATICULE = Math.PI / 6 // between two meridians, and between two parallels, of a globe
const GLIDE = 500 // milliseconds in which a point moves to the centre of the disk

// The plane, and what all spaces have in common.
class Plane {
  constructor(page) { this.page = page }

  extent() {
    const all = this.page.rows(() => true)
    return [this.page.x, this.page.y].map((values) => this.page.range(values, all))
  }

  // Return the translations of the map that are visible in a region.
  offsets(region) { return [[0, 0]] }

  // Return the image of point i that is nearest to (x, y).
  image(i, x, y) { return [this.page.x[i], this.page.y[i]] }

  // Return lines [xs, ys] that bound the space.
  frame() { return [[], []] }

  // Return the coordinates of point i in the map of the file.
  original(i) { return [this.page.x[i], this.page.y[i]] }

  // Draw the points where they have moved, and show the one that is now under the mouse.
  moved() {
    this.page.upload()
    this.page.draw()
    this.page.point_at(this.page.mouse)
  }

  listen() {}
  reset() {}
}

class TorusSpace extends Plane {
  constructor(page) {
    super(page)
    this.period = page.facts.period
  }

  extent() { return this.period.map((period) => [0, period]) }

  offsets({low, span}) {
    const [columns, rows] = this.period.map((period, c) => {
      const first = Math.max(Math.floor(low[c] / period), -TILES)
      const last = Math.min(Math.floor((low[c] + span[c]) / period), TILES)
      return Array.from({length: Math.max(last - first + 1, 0)}, (_, k) => (first + k) * period)
    })
    return columns.flatMap((x) => rows.map((y) => [x, y]))
  }

  image(i, x, y) {
    return [x, y].map((mouse, c) => {
      const here = [this.page.x[i], this.page.y[i]][c]
      return here + this.period[c] * Math.round((mouse - here) / this.period[c])
    })
  }

  frame() {
    const [width, height] = this.period
    const marks = Array.from({length: 2 * TILES + 2}, (_, k) => k - TILES)
    const [first, last] = [-TILES, TILES + 1]
    return [
      [...marks.map((k) => [k * width, k * width]), ...marks.map(() => [first * width, last * width])],
      [...marks.map(() => [first * height, last * height]), ...marks.map((k) => [k * height, k * height])],
    ]
  }

  original(i) {
    const {cut} = this.page.facts
    return [this.page.x[i], this.page.y[i]].map((value, c) => (value + cut[c]) % this.period[c])
  }
}

// The Poincaré disk. An isometry is z → (a z + b)/(b̄ z + ā) with |a|² − |b|² = 1; complex numbers are pairs.
const times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c]
const plus = ([a, b], [c, d]) => [a + c, b + d]
const conjugate = ([a, b]) => [a, -b]

// Return the isometry [a, b] that moves c to the centre.
function centring(c) {
  const scale = 1 / Math.sqrt(Math.max(1 - c[0] ** 2 - c[1] ** 2, 1e-12))
  return [[scale, 0], [-scale * c[0], -scale * c[1]]]
}

const compose = ([a, b], [c, d]) =>
  [plus(times(a, c), times(b, conjugate(d))), plus(times(a, d), times(b, conjugate(c)))]

function apply([a, b], z) {
  const above = plus(times(a, z), b), below = plus(times(conjugate(b), z), conjugate(a))
  const size = below[0] ** 2 + below[1] ** 2
  return times(above, conjugate(below)).map((part) => part / size)
}

class Disk extends Plane {
  constructor(page) {
    super(page)
    this.isometry = [[1, 0], [0, 0]]
    this.base = [Float32Array.from(page.x), Float32Array.from(page.y)]
    this.centers = page.facts.columns.map(({centers}) => centers)
  }

  extent() { return [[-1, 1], [-1, 1]] }

  frame() {
    const angles = Array.from({length: 241}, (_, k) => Math.PI * k / 120)
    return [[angles.map(Math.cos)], [angles.map(Math.sin)]]
  }

  original(i) { return [this.base[0][i], this.base[1][i]] }

  move(isometry) {
    this.isometry = isometry
    const {page} = this
    for (let i = 0; i < page.x.length; i++) [page.x[i], page.y[i]] = apply(isometry, this.original(i))
    page.facts.columns.forEach((column, c) => {
      column.centers = this.centers[c]?.map((z) => z[0] === null ? z : apply(isometry, z))
    })
    this.moved()
  }

  // Move the disk so that point i is at its centre, along the shortest path.
  center(i) {
    const start = this.isometry, goal = apply(start, this.original(i))
    const radius = Math.min(Math.hypot(...goal), 1 - 1e-7)
    if (radius === 0) return
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches
    const begin = performance.now()
    const step = () => {
      const t = still ? 1 : Math.min((performance.now() - begin) / GLIDE, 1)
      const part = Math.tanh((3 - 2 * t) * t * t * Math.atanh(radius)) / Math.hypot(...goal)
      this.move(compose(centring(goal.map((value) => part * value)), start))
      if (t < 1) requestAnimationFrame(step)
      else document.body.dataset.center = i
    }
    step()
  }

  listen() {
    this.page.plot.on_event("tap", ({x, y}) => {
      const row = this.page.nearest(x, y)
      if (row >= 0) this.center(row)
    })
  }

  reset() { this.move([[1, 0], [0, 0]]) }
}

const PATCH = 0.5 // norm of the mean of points above which they are a patch, as in charts.py
const UPRIGHT = [[1, 0, 0], [0, 0, 1], [0, -1, 0]] // right, up, and towards the viewer; the third column is upwards

// The unit sphere seen from afar. Points on its other side are NaN, so that they are neither drawn nor found.
class Globe extends Plane {
  constructor(page) {
    super(page)
    this.base = page.facts.globe
    this.centers = page.facts.columns.map(({sphere_centers}) => sphere_centers)
    const all = Array.from({length: page.x.length}, (_, i) => i)
    this.home = this.facing(all, PATCH) ?? UPRIGHT
    this.turn(this.home)
  }

  extent() { return [[-1, 1], [-1, 1]] }

  frame() {
    const angles = Array.from({length: 241}, (_, k) => Math.PI * k / 120)
    return [[angles.map(Math.cos)], [angles.map(Math.sin)]]
  }

  // Return lines [xs, ys]: the parts of the meridians and parallels that are in front.
  graticule() {
    const at = (longitude, latitude) =>
      [Math.cos(latitude) * Math.cos(longitude), Math.cos(latitude) * Math.sin(longitude), Math.sin(latitude)]
    const angles = (first, last, step) => Array.from({length: Math.round((last - first) / step) + 1}, (_, k) => first + k * step)
    const fine = GRATICULE / 15
    const meridians = angles(-Math.PI, Math.PI - GRATICULE, GRATICULE).map((longitude) =>
      angles(-Math.PI / 2, Math.PI / 2, fine).map((latitude) => this.seen(at(longitude, latitude))))
    const parallels = angles(GRATICULE - Math.PI / 2, Math.PI / 2 - GRATICULE, GRATICULE).map((latitude) =>
      angles(-Math.PI, Math.PI, fine).map((longitude) => this.seen(at(longitude, latitude))))
    const lines = [...meridians, ...parallels] // Bokeh breaks a line at NaN
    return [0, 1].map((c) => lines.map((line) => line.map((point) => point?.[c] ?? NaN)))
  }

  unit(i) { return [0, 1, 2].map((c) => this.base[3 * i + c]) }

  original(i) { return this.unit(i) }

  // Return the position of a point on the page, or nothing if it is on the other side.
  seen(point) {
    const [x, y, depth] = this.axes.map((axis) => axis[0] * point[0] + axis[1] * point[1] + axis[2] * point[2])
    return depth > -1e-6 ? [x, y] : null
  }

  // Look at the sphere along the last of three axes; the first two point to the right and upwards.
  turn(axes) {
    this.axes = axes
    const {page} = this
    for (let i = 0; i < page.x.length; i++) [page.x[i], page.y[i]] = this.seen(this.unit(i)) ?? [NaN, NaN]
    page.facts.columns.forEach((column, c) => {
      column.centers = this.centers[c]?.map((point) => point[0] === null ? point : this.seen(point) ?? [null, null])
    })
    const [xs, ys] = this.graticule()
    page.graticule.data = {xs, ys}
  }

  // Turn the front of the globe by (dx, dy), in radii.
  drag(dx, dy) {
    const mix = (a, b, angle) => [0, 1, 2].map((c) => Math.cos(angle) * a[c] + Math.sin(angle) * b[c])
    let [right, up, front] = this.axes
    ;[right, front] = [mix(right, front, dx), mix(front, right, -dx)]
    ;[up, front] = [mix(up, front, dy), mix(front, up, -dy)]
    this.turn([right, up, front])
    this.moved()
  }

  // Return the axes from which the mean of some points is in front, or nothing if its norm is not above a number.
  facing(rows, above) {
    const sum = [0, 1, 2].map((c) => rows.reduce((total, i) => total + this.base[3 * i + c], 0))
    const length = Math.hypot(...sum)
    if (!(length > above * rows.length)) return null
    const front = sum.map((value) => value / length)
    const flat = Math.hypot(front[0], front[1])
    const right = flat > 1e-6 ? [-front[1] / flat, front[0] / flat, 0] : [1, 0, 0]
    const up = [0, 1, 2].map((c) => front[(c + 1) % 3] * right[(c + 2) % 3] - front[(c + 2) % 3] * right[(c + 1) % 3])
    return [right, up, front]
  }

  // Turn the globe so that the middle of some points is in front.
  face(rows) {
    const axes = this.facing(rows, 0)
    if (!axes) return
    this.turn(axes)
    this.moved()
  }

  listen() {
    const {plot, view} = this.page
    let last = null
    plot.on_event("panstart", ({sx, sy}) => { last = plot.toolbar.gestures.pan.active ? null : [sx, sy] })
    plot.on_event("pan", ({sx, sy}) => {
      if (!last) return
      const unit = (plot.x_range.end - plot.x_range.start) / view.frame.bbox.width
      this.drag(unit * (sx - last[0]), unit * (last[1] - sy))
      last = [sx, sy]
    })
    plot.on_event("panend", () => {
      if (last) document.body.dataset.turned = "yes"
      last = null
    })
  }

  reset() {
    this.turn(this.home)
    this.moved()
  }
}

const make_space = (page) => page.facts.period ? new TorusSpace(page) : page.facts.disk ? new Disk(page)
  : page.facts.solid ? new Solid(page) : page.facts.globe ? new Globe(page) : new Plane(page)
