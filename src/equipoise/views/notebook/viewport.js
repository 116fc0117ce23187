// The visible region of a map in the widget, with equal axes; y points up in the map and down on the screen.
"use strict"

const VIEW_MARGIN = 1.08 // of the map when all of it is shown
const CLOSEST = 1e-4, FARTHEST = 20 // limits of zooming, relative to the whole map

class Viewport {
  constructor() {
    Object.assign(this, {low: [0, 0], unit: 1, width: 1, height: 1, home_unit: 1}) // unit: map units per CSS pixel
  }

  get span() { return [this.unit * this.width, this.unit * this.height] }
  get magnification() { return Math.max(this.home_unit / this.unit, 1) }

  to_map(left, top) { return [this.low[0] + this.unit * left, this.low[1] + this.unit * (this.height - top)] }
  to_screen(x, y) { return [(x - this.low[0]) / this.unit, this.height - (y - this.low[1]) / this.unit] }

  // Show the rectangle [[left, right], [bottom, top]] of the map.
  show([[left, right], [bottom, top]]) {
    this.unit = Math.max((right - left) / this.width, (top - bottom) / this.height) * VIEW_MARGIN || 1 / this.width
    this.center_on((left + right) / 2, (bottom + top) / 2)
  }

  center_on(x, y) { this.low = [x - this.span[0] / 2, y - this.span[1] / 2] }

  // Change the size in pixels, and keep the centre.
  resize(width, height) {
    const [x, y] = this.to_map(this.width / 2, this.height / 2)
    Object.assign(this, {width, height})
    this.center_on(x, y)
  }

  pan(right, down) { this.low = [this.low[0] - this.unit * right, this.low[1] + this.unit * down] }

  // Magnify by a factor, and keep the position [left, top] of the screen where it is.
  zoom(factor, left = this.width / 2, top = this.height / 2) {
    const [x, y] = this.to_map(left, top)
    this.unit = Math.min(Math.max(this.unit / factor, CLOSEST * this.home_unit), FARTHEST * this.home_unit)
    this.low = [x - this.unit * left, y - this.unit * (this.height - top)]
  }
}
