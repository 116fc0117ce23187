// The mouse, touch and the keyboard on the map of the widget.
"use strict"

const WHEEL_SPEED = 0.0015, KEY_ZOOM = 1.5, KEY_PAN = 60 // per unit of the wheel; factor; pixels
const STEP = 3 // minimum distance in pixels between corners of a lasso
const HINT_TIME = 1500 // milliseconds

class Pointer {
  // `actions` has the functions hover(left, top), leave(), select(rows, mode), escape() and hint(text).
  constructor(map, stage, actions) {
    Object.assign(this, {map, stage, actions, tool: "pan", drag: null})
    const listen = (name, listener) => stage.addEventListener(name, listener, {passive: false})
    listen("pointerdown", (event) => this.down(event))
    listen("pointermove", (event) => this.moved(event))
    listen("pointerup", (event) => this.up(event))
    listen("pointercancel", () => this.cancel())
    listen("pointerleave", () => actions.leave())
    listen("dblclick", () => map.home())
    listen("wheel", (event) => this.wheel(event))
    listen("keydown", (event) => this.key(event))
  }

  at(event) {
    const {left, top, width} = this.stage.getBoundingClientRect()
    const scale = this.stage.clientWidth / (width - 2 * this.stage.clientLeft) || 1 // the page may be scaled
    return [scale * (event.clientX - left) - this.stage.clientLeft, scale * (event.clientY - top) - this.stage.clientTop]
  }

  down(event) {
    if (event.button !== 0) return
    this.stage.focus({preventScroll: true})
    this.map.restore()
    this.stage.setPointerCapture(event.pointerId)
    this.drag = {corners: [this.at(event)], last: this.at(event)}
    this.actions.leave()
    event.preventDefault()
  }

  moved(event) {
    const at = this.at(event)
    if (!this.drag) return this.actions.hover(...at)
    const {last, corners} = this.drag
    if (this.tool === "pan") this.map.move((view) => view.pan(at[0] - last[0], at[1] - last[1]))
    else {
      if (this.tool === "box") this.drag.corners = [corners[0], [at[0], corners[0][1]], at, [corners[0][0], at[1]]]
      else if (Math.hypot(at[0] - corners.at(-1)[0], at[1] - corners.at(-1)[1]) >= STEP) corners.push(at)
      this.map.draw_outline(this.drag.corners)
    }
    this.drag.last = at
  }

  up(event) {
    if (!this.drag) return
    const {corners} = this.drag
    this.cancel()
    if (this.tool === "pan" || corners.length < 3) return
    this.actions.select(this.map.enclosed(corners), event.shiftKey ? "add" : event.altKey ? "remove" : "replace")
  }

  cancel() {
    this.drag = null
    this.map.draw_outline([])
  }

  // The wheel scrolls the notebook until the map has been clicked.
  wheel(event) {
    if (this.stage.getRootNode().activeElement !== this.stage && !event.ctrlKey)
      return this.actions.hint("Click the map, then turn the wheel to zoom")
    event.preventDefault()
    if (this.drag) return
    const pixels = event.deltaMode === 0 ? event.deltaY : 30 * event.deltaY
    const factor = Math.exp(-WHEEL_SPEED * Math.max(-400, Math.min(400, pixels)) * (event.ctrlKey ? 5 : 1))
    this.map.move((view) => view.zoom(factor, ...this.at(event)))
  }

  key(event) {
    if (event.target !== this.stage || event.metaKey || event.altKey || event.ctrlKey) return
    const pan = {ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key]
    if (pan) this.map.move((view) => view.pan(KEY_PAN * pan[0], KEY_PAN * pan[1]))
    else if (event.key === "+" || event.key === "=") this.map.move((view) => view.zoom(KEY_ZOOM))
    else if (event.key === "-") this.map.move((view) => view.zoom(1 / KEY_ZOOM))
    else if (event.key === "0" || event.key === "Home") this.map.home()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
}
