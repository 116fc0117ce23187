// Keys for the map, for use without a mouse: the map takes the focus by Tab.
"use strict"

const KEY_TURN = 0.12 // radians by which an arrow turns a globe

class Keyboard {
  constructor(page) {
    this.page = page
    this.row = -1 // the described point
  }

  listen() {
    const map = element("map")
    map.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || !this.act(event.key)) return
      event.preventDefault()
    })
    map.addEventListener("focusout", () => this.page.show_tooltip(-1))
  }

  // Act on a key; return whether it is one of the map's.
  act(key) {
    const {page} = this
    if (key in ARROWS && page.space.drag) this.turn(...ARROWS[key])
    else if (move_by_key(key, page.plot)) page.show_tooltip(-1)
    else if (key === "0") page.reset()
    else if (key === "n" || key === "p") this.describe(key === "n" ? 1 : -1)
    else if (key === "Escape") page.show_tooltip(-1)
    else return false
    return true
  }

  // Turn a globe.
  turn(x, y) {
    this.page.show_tooltip(-1)
    this.page.space.drag(-KEY_TURN * x, -KEY_TURN * y)
  }

  // Describe the next or the previous point among the matches of the search, the selection, or the visible points.
  describe(step) {
    const {page} = this
    const all = page.matches.length ? page.matches : page.selection.length ? page.selection : page.visible_rows()
    const rows = all.filter((i) => page.is_visible(i))
    if (!rows.length) return
    const last = rows.indexOf(this.row)
    this.row = rows[last < 0 ? (step > 0 ? 0 : rows.length - 1) : (last + step + rows.length) % rows.length]
    const {x_scale, y_scale} = page.view.frame, {left, top} = page.view.el.getBoundingClientRect()
    page.show_tooltip(this.row, left + x_scale.compute(page.x[this.row]), top + y_scale.compute(page.y[this.row]))
  }
}
