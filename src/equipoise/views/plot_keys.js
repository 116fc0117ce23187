// Move and zoom a plot by keys.
"use strict"

const KEY_STEP = 0.12, KEY_ZOOM = 1.3 // part of the visible region by which an arrow moves it; factor of + and −
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}

// Move the visible region of a plot by KEY_STEP times (x, y), and multiply its sides by a factor.
function move_plot({x_range, y_range}, [x, y], factor, options) {
  for (const [range, side] of [[x_range, x], [y_range, y]]) {
    const span = range.end - range.start
    const middle = (range.start + range.end) / 2 + KEY_STEP * side * span, half = factor * span / 2
    range.setv({start: middle - half, end: middle + half}, options)
  }
}

// Move or zoom a plot if the key is one for it, and return whether it is.
function move_by_key(key, plot, options) {
  if (key in ARROWS) move_plot(plot, ARROWS[key], 1, options)
  else if (key === "+" || key === "=") move_plot(plot, [0, 0], 1 / KEY_ZOOM, options)
  else if (key === "-") move_plot(plot, [0, 0], KEY_ZOOM, options)
  else return false
  return true
}
