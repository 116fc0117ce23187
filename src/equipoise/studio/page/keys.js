// Keys for the maps of the studio, for use without a mouse: a map takes the focus by Tab.
"use strict"

const KEY_STEP = 0.12, KEY_ZOOM = 1.3 // part of the visible region by which an arrow moves it; factor of + and −
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}

// Act on a key pressed on a map; return whether it is one of the map's.
function act_on_key(key, scene, choose, play) {
  const {x_range, y_range} = scene.plot
  const move = (range, shift, factor) => {
    const middle = (range.start + range.end) / 2 + shift * (range.end - range.start)
    const half = factor * (range.end - range.start) / 2
    range.setv({start: middle - half, end: middle + half}, {sync: false})
  }
  const change = (x, y, factor) => {
    move(x_range, x, factor)
    move(y_range, y, factor)
  }
  if (key in ARROWS) change(...ARROWS[key].map((side) => KEY_STEP * side), 1)
  else if (key === "+" || key === "=") change(0, 0, 1 / KEY_ZOOM)
  else if (key === "-") change(0, 0, KEY_ZOOM)
  else if (key === "0") scene.follow()
  else if (key === "n" || key === "p") choose(scene.row_after(key === "n" ? 1 : -1))
  else if (key === "Escape") choose(-1)
  else if (key === " ") play()
  else return false
  return true
}
