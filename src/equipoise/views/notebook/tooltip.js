// The values of the point under the mouse, beside it.
"use strict"

class Tooltip {
  constructor(stage) {
    this.stage = stage
    this.box = add(stage, "div", "", {className: "eq-tip", hidden: true})
    this.box.role = "status"
    this.row = -1
  }

  hide() {
    this.row = -1
    this.box.hidden = true
  }

  // Show a row at a position of the stage; its values arrive later, by `fill`.
  show(row, left, top) {
    if (row !== this.row) {
      this.row = row
      this.box.replaceChildren()
      this.add_lines([["row", counted(row)]])
    }
    this.at = [left, top]
    this.box.hidden = false
    this.place()
  }

  fill({row, values, more, image}) {
    if (row !== this.row) return
    this.box.replaceChildren()
    if (image) this.add_image(image)
    this.add_lines([...values, ["row", counted(row)]])
    if (more) add(this.box, "div", `and ${counted(more)} more columns`, {className: "eq-muted"})
    this.place()
  }

  add_lines(lines) {
    const table = add(this.box, "table")
    for (const [name, value] of lines) {
      const line = add(table, "tr")
      add(line, "th", name)
      add(line, "td", value)
    }
  }

  add_image({width, height, pixels}) {
    const canvas = add(this.box, "canvas", "", {width, height})
    const bytes = Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0))
    const target = canvas.getContext("2d").createImageData(width, height)
    for (let p = 0; p < width * height; p++) {
      target.data.set(bytes.subarray(3 * p, 3 * p + 3), 4 * p)
      target.data[4 * p + 3] = 255
    }
    canvas.getContext("2d").putImageData(target, 0, 0)
  }

  // Place the box right of the point if there is room, otherwise left of it.
  place() {
    const {clientWidth, clientHeight} = this.stage, {offsetWidth, offsetHeight} = this.box, [left, top] = this.at
    const right = left + 16 + offsetWidth <= clientWidth
    this.box.style.left = `${right ? left + 16 : Math.max(left - 16 - offsetWidth, 0)}px`
    this.box.style.top = `${Math.max(Math.min(top + 10, clientHeight - offsetHeight), 0)}px`
  }
}
