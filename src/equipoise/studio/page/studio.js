// The maps of views/studio: points that move, drawn by dots.js below a plot of Bokeh, which has the tools and the arrows.
// What the server sends are models: `points` (the places of one frame), `colors`, `rows` (what is told of a point) and
// `chosen`. What it is told are `clicks` and `ack`, how many frames have been drawn.
"use strict"

const REACH = 12 // pixels between the mouse and the point that it means, at most
const WIDE = 800, SMALLEST = 2 // pixels: in a narrower map the dots are smaller in proportion, down to this diameter
const COVER = 230 // of 255, how much a point covers the paper
const INK = "#1d2230", PAPER = "#ffffff"

class Scene {
  constructor(name, view, models) {
    Object.assign(this, {name, view, models})
    this.plot = view.model
    this.canvas = element(`dots-${name}`)
    this.dots = new Dots(this.canvas)
    this.following = true // the window goes with the map until somebody moves it
    this.mouse = null
  }

  get there() {
    return this.at !== undefined && this.at.length === 2 * this.n && this.canvas.clientWidth > 0
  }

  // Take over what the models hold now; only what is new goes to the graphics card.
  update() {
    const {points, colors, rows, chosen} = this.models
    if (rows.data.label !== this.labels) {
      this.labels = rows.data.label
      this.n = this.labels.length
      this.following = true
      this.dots.list("order", scattered(this.n))
    }
    const codes = colors.data[this.name], palette = colors.tags
    if (codes.length === this.n && (codes !== this.codes || palette !== this.palette)) this.paint(codes, palette)
    const row = chosen.tags[0] ?? -1
    if (row !== this.row && row < this.n) this.dots.list("found", row < 0 ? [] : [row])
    this.row = row
    const at = points.data[this.name]
    if (at === this.at) return
    this.at = at // none while another data set is on its way
    if (at !== undefined) this.dots.set("at", at)
    if (this.following) this.home()
    if (this.mouse !== null) this.tell()
  }

  paint(codes, palette) {
    Object.assign(this, {codes, palette})
    const colors = palette.map(rgb), last = colors.length - 1
    const bytes = new Uint8Array(4 * codes.length)
    for (let i = 0; i < codes.length; i++) {
      bytes.set(colors[Math.min(codes[i], last)], 4 * i)
      bytes[4 * i + 3] = COVER
    }
    this.dots.set("color", bytes)
  }

  draw() {
    if (!this.there) return this.dots.clear()
    const narrow = Math.min(this.canvas.clientWidth, this.canvas.clientHeight) / WIDE
    const size = Math.max(this.models.rows.tags[0] * Math.min(narrow, 1), SMALLEST)
    this.dots.draw({...shown(this.plot), size, ink: solid(INK), paper: solid(PAPER)})
  }

  home() {
    if (!this.there) return
    const extent = [[Infinity, -Infinity], [Infinity, -Infinity]]
    for (let i = 0; i < this.at.length; i++) {
      const side = extent[i % 2], value = this.at[i]
      if (value < side[0]) side[0] = value
      if (value > side[1]) side[1] = value
    }
    this.moving = true
    show(this.view, ...extent, {sync: false}) // the server need not know
    this.moving = false
  }

  nearest(x, y) {
    const {x_range} = this.plot
    const reach = REACH * (x_range.end - x_range.start) / this.view.frame.bbox.width
    let found = -1, least = reach ** 2
    for (let i = 0; this.there && i < this.n; i++) {
      const d2 = (this.at[2 * i] - x) ** 2 + (this.at[2 * i + 1] - y) ** 2
      if (d2 <= least) [found, least] = [i, d2]
    }
    return found
  }

  // What is known of the point under the mouse.
  tell() {
    const tip = element("tip")
    const {left, top} = this.view.el.getBoundingClientRect()
    const {x_scale, y_scale} = this.view.frame
    const row = this.mouse === null ? -1 : this.nearest(...this.mouse.map((side, i) => [x_scale, y_scale][i].invert(side)))
    tip.hidden = row < 0
    if (row < 0) return
    const name = this.models.rows.tags[1][this.labels[row]]
    tip.textContent = name === undefined ? `row ${row}` : `row ${row}\n${name}`
    const {width, height} = tip.getBoundingClientRect()
    const [x, y] = [left + this.mouse[0] + 14, top + this.mouse[1] + 12]
    tip.style.left = `${Math.min(x, innerWidth - width - 4)}px`
    tip.style.top = `${Math.min(y, innerHeight - height - 4)}px`
  }

  listen(ask) {
    on_resize(this.view, () => {
      lay(this.canvas, this.view)
      if (this.following) this.home()
      ask()
    })
    for (const range of [this.plot.x_range, this.plot.y_range])
      range.change.connect(() => {
        if (!this.moving) this.following = false
        ask()
      })
  }
}

class Studio {
  constructor(found) {
    const names = ["points", "colors", "rows", "chosen", "clicks", "ack"]
    this.models = Object.fromEntries(names.map((name) => [name, found.get_model_by_name(name)]))
    const views = [...Bokeh.index.roots]
    this.scenes = ["a", "b"].map((name) =>
      new Scene(name, views.find(({model}) => model.name === `map ${name}`), this.models))
    this.received = this.drawn = this.clicked = 0
  }

  // Ask for a picture at the next time that the browser draws.
  ask() {
    if (this.asked) return
    this.asked = true
    requestAnimationFrame(() => {
      this.asked = false
      element("panel-b").hidden = !("b" in this.models.points.data)
      for (const scene of this.scenes) {
        scene.update()
        scene.draw()
      }
      if (this.drawn === this.received) return
      this.drawn = this.received
      this.models.ack.tags = [this.drawn]
    })
  }

  listen() {
    const scene = (name) => this.scenes.find((scene) => scene.name === name)
    for (const scene of this.scenes) scene.listen(() => this.ask())
    document.addEventListener("frame", () => {
      this.received++
      this.ask()
    })
    document.addEventListener("changed", () => this.ask())
    document.addEventListener("click on map", ({detail: [name, x, y]}) => {
      this.models.clicks.tags = [scene(name).nearest(x, y), ++this.clicked]
    })
    document.addEventListener("over", ({detail: [name, x, y]}) => {
      scene(name).mouse = x === null ? null : [x, y]
      scene(name).tell()
    })
    document.addEventListener("whole map", ({detail: name}) => {
      scene(name).following = true
      scene(name).home()
    })
    this.ask()
  }
}

let studio // the one of this page

function start(found, message) {
  try {
    studio = new Studio(found)
    studio.listen()
  } catch (error) {
    message.text = `The maps cannot be shown: ${error.message}.`
    throw error
  }
}
