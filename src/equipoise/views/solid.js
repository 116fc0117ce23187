// Maps in three dimensions on a page: they turn like a globe, and near points are larger and stronger.
"use strict"

const EYE = 3 // distance of the eye from the middle of the map, in radii of the map
const SHELVES = 512 // depths that are told apart when the points are drawn from the back to the front

class Solid extends Globe {
  constructor(page) {
    super(page)
    this.edges = this.box()
    this.show_box()
  }

  // Return the coordinates of point i in the map of the file.
  original(i) {
    const {center, radius} = this.page.facts.solid
    return this.unit(i).map((value, c) => radius * value + center[c])
  }

  extent() {
    const side = EYE / Math.sqrt(EYE ** 2 - 1) // of the unit ball in perspective
    return [[-side, side], [-side, side]]
  }

  frame() { return [[], []] }

  // Return the twelve edges of the box around the points.
  box() {
    const sides = [0, 1, 2].map((c) => {
      let [low, high] = [Infinity, -Infinity]
      for (let i = c; i < this.base.length; i += 3) [low, high] = [Math.min(low, this.base[i]), Math.max(high, this.base[i])]
      return [low, high]
    })
    const corner = (bits) => sides.map((side, c) => side[bits >> c & 1])
    return [...Array(8).keys()].flatMap((bits) =>
      [0, 1, 2].filter((c) => !(bits >> c & 1)).map((c) => [corner(bits), corner(bits | 1 << c)]))
  }

  graticule() {
    const lines = (this.edges ?? []).map((ends) => ends.map((point) => this.seen(point)))
    return [0, 1].map((c) => lines.map((line) => line.map((point) => point[c])))
  }

  show_box() {
    const [xs, ys] = this.graticule()
    this.page.graticule.data = {xs, ys}
  }

  depth(point) { return this.axes[2].reduce((sum, value, c) => sum + value * point[c], 0) }

  // Return the position of a point on the page, in perspective.
  seen(point) {
    const [x, y, depth] = this.axes.map((axis) => axis[0] * point[0] + axis[1] * point[1] + axis[2] * point[2])
    const scale = EYE / (EYE - depth)
    return [scale * x, scale * y]
  }

  turn(axes) {
    super.turn(axes)
    const {page} = this, depths = this.depths = new Float32Array(page.x.length)
    const near = new Float32Array(depths.length)
    for (let i = 0; i < depths.length; i++) {
      depths[i] = this.depth(this.unit(i))
      near[i] = EYE / (EYE - depths[i])
    }
    page.dots.set("near", near)
    page.colors.arrange()
  }

  // Return all rows from the back to the front.
  from_back() {
    const {depths} = this, counts = new Uint32Array(SHELVES + 1), rows = new Uint32Array(depths.length)
    const shelf = (depth) => Math.min(Math.max(Math.floor(SHELVES * (depth + 1) / 2), 0), SHELVES - 1)
    for (const depth of depths) counts[shelf(depth) + 1]++
    for (let k = 0; k < SHELVES; k++) counts[k + 1] += counts[k]
    depths.forEach((depth, i) => { rows[counts[shelf(depth)]++] = i })
    return rows
  }
}
