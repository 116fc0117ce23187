// The maps of the studio: moving points, drawn by dots.js below a Bokeh plot that has the tools and the arrows.
// The server sends data as Bokeh models: `points` (positions of one frame), `colors`, `rows` (labels for the tooltip) and
// `chosen`. The page answers with `clicks` and `ack` (number of frames drawn).
"use strict"

const WIDE = 800, MIN_SIZE = 2 // pixels: below this width dots shrink in proportion, down to this diameter

class Scene {
  constructor(name, view, models) {
    Object.assign(this, {name, view, models})
    this.plot = view.model
    this.canvas = element(`dots-${name}`)
    this.dots = new Dots(this.canvas)
    this.following = true // the view follows the map until the user moves it
    this.mouse = null
  }

  get ready() {
    return this.at !== undefined && this.at.length === 2 * this.n && this.canvas.clientWidth > 0
  }

  // Copy the models' data; only what has changed is sent to the GPU.
  update() {
    const {points, colors, rows, chosen} = this.models
    if (rows.data.label !== this.labels) {
      this.labels = rows.data.label
      this.n = this.labels.length
      this.following = true
      this.dots.set_rows("order", scrambled(this.n))
    }
    const codes = colors.data[this.name], palette = colors.tags
    const changed = codes !== this.codes || palette !== this.palette || theme.name !== this.theme
    if (codes.length === this.n && changed) this.paint(codes, palette)
    const row = chosen.tags[0] ?? -1
    if (row !== this.row && row < this.n) this.dots.set_rows("found", row < 0 ? [] : [row])
    this.row = row
    const at = points.data[this.name]
    if (at === this.at) return
    this.at = at // undefined while another data set is loading
    if (at !== undefined) this.dots.set("at", at)
    if (this.following) this.home()
  }

  paint(codes, palette) {
    Object.assign(this, {codes, palette, theme: theme.name})
    const colors = palette.map((color) => rgb(theme.adapt(color))), last = colors.length - 1
    const bytes = new Uint8Array(4 * codes.length)
    for (let i = 0; i < codes.length; i++) {
      bytes.set(colors[Math.min(codes[i], last)], 4 * i)
      bytes[4 * i + 3] = OPACITY
    }
    this.dots.set("color", bytes)
  }

  draw() {
    if (this.mouse !== null) this.show_tooltip()
    if (!this.ready) return this.dots.clear()
    const scale = Math.min(this.canvas.clientWidth, this.canvas.clientHeight) / WIDE
    const size = Math.max(this.models.rows.tags[0] * Math.min(scale, 1), MIN_SIZE)
    const [ring, background] = ["--text", "--background"].map((name) => opaque(theme.color(name)))
    this.dots.draw({...visible_region(this.plot), size, ring, background})
  }

  home() {
    if (!this.ready) return
    const extent = [[Infinity, -Infinity], [Infinity, -Infinity]]
    for (let i = 0; i < this.at.length; i++) {
      const side = extent[i % 2], value = this.at[i]
      if (value < side[0]) side[0] = value
      if (value > side[1]) side[1] = value
    }
    this.moving = true
    show_region(this.view, ...extent, {sync: false}) // not sent to the server
    this.moving = false
  }

  // Let the view follow the map again.
  follow() {
    this.following = true
    this.home()
  }

  // Return the next (step 1) or the previous (−1) row after the chosen one.
  row_after(step) { return this.row < 0 ? (step > 0 ? 0 : this.n - 1) : (this.row + step + this.n) % this.n }

  nearest(x, y) {
    const {x_range} = this.plot
    const reach = REACH * (x_range.end - x_range.start) / this.view.frame.bbox.width
    let found = -1, smallest = reach ** 2
    for (let i = 0; this.ready && i < this.n; i++) {
      const d2 = (this.at[2 * i] - x) ** 2 + (this.at[2 * i + 1] - y) ** 2
      if (d2 <= smallest) [found, smallest] = [i, d2]
    }
    return found
  }

  // Show the row and class of the point under the mouse.
  show_tooltip() {
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

  listen(redraw) {
    on_resize(this.view, () => {
      align_canvas(this.canvas, this.view)
      if (this.following) this.home()
      redraw()
    })
    for (const range of [this.plot.x_range, this.plot.y_range])
      range.change.connect(() => {
        if (!this.moving) this.following = false
        redraw()
      })
  }
}

class Studio {
  constructor(bokeh_document) {
    const names = ["points", "colors", "rows", "chosen", "clicks", "ack"]
    this.models = Object.fromEntries(names.map((name) => [name, bokeh_document.get_model_by_name(name)]))
    const views = [...Bokeh.index.roots]
    this.scenes = ["a", "b"].map((name) =>
      new Scene(name, views.find(({model}) => model.name === `map ${name}`), this.models))
    this.play = bokeh_document.get_model_by_name("play")
    this.transport = bokeh_document.get_model_by_name("transport")
    this.received = this.drawn = this.clicked = 0
  }

  // Redraw in the browser's next animation frame.
  redraw() {
    if (this.redraw_pending) return
    this.redraw_pending = true
    requestAnimationFrame(() => {
      this.redraw_pending = false
      element("panel-b").hidden = !("b" in this.models.points.data)
      element("maps").classList.toggle("two", !element("panel-b").hidden)
      for (const scene of this.scenes) {
        scene.update()
        scene.draw()
      }
      if (this.drawn === this.received) return
      this.drawn = this.received
      this.models.ack.tags = [this.drawn]
    })
  }

  // Show the forces on a row, or none for −1.
  choose(row) { this.models.clicks.tags = [row, ++this.clicked] }

  press_play() { if (this.transport.visible) Bokeh.index.find_one(this.play).el.shadowRoot.querySelector("button").click() }

  listen() {
    const scene = (name) => this.scenes.find((scene) => scene.name === name)
    for (const scene of this.scenes) scene.listen(() => this.redraw())
    document.addEventListener("frame", () => {
      this.received++
      this.redraw()
    })
    document.addEventListener("changed", () => this.redraw())
    document.addEventListener("click on map", ({detail: [name, x, y]}) => {
      this.choose(scene(name).nearest(x, y))
    })
    document.addEventListener("hover", ({detail: [name, x, y]}) => {
      scene(name).mouse = x === null ? null : [x, y]
      scene(name).show_tooltip()
    })
    document.addEventListener("reset view", ({detail: name}) => {
      scene(name).follow()
    })
    for (const one of this.scenes) {
      one.canvas.parentElement.addEventListener("keydown", (event) => {
        if (event.target !== event.currentTarget || event.ctrlKey || event.altKey || event.metaKey) return
        if (act_on_key(event.key, one, (row) => this.choose(row), () => this.press_play())) event.preventDefault()
      })
    }
    const show_transport = () => { element("transport").hidden = !this.transport.visible }
    this.transport.properties.visible.change.connect(show_transport)
    show_transport()
    this.redraw()
  }
}

// Keep the keyboard focus on a button: Bokeh replaces its element whenever the label changes.
function keep_focus(view) {
  let focused = false
  view.el.addEventListener("focusin", () => { focused = true })
  view.el.addEventListener("focusout", ({relatedTarget}) => { if (relatedTarget !== null) focused = false })
  document.addEventListener("pointerdown", (event) => {
    if (!event.composedPath().includes(view.el)) focused = false
  }, {capture: true})
  const {label, button_type} = view.model.properties
  for (const property of [label, button_type])
    property.change.connect(() => requestAnimationFrame(() => {
      if (focused && document.activeElement === document.body) view.el.shadowRoot.querySelector("button").focus()
    }))
}

// Remove the token from the address, which users copy and browsers remember; the cookie replaces it.
function hide_token() {
  const address = new URL(location)
  if (!address.searchParams.has("token")) return
  address.searchParams.delete("token")
  history.replaceState(null, "", address)
}

let studio

function start(bokeh_document, message) {
  try {
    studio = new Studio(bokeh_document)
    studio.listen()
    for (const name of ["play", "share", "copy"]) keep_focus(Bokeh.index.find_one(bokeh_document.get_model_by_name(name)))
    theme.listen(["loss", "energy"].map((name) => bokeh_document.get_model_by_name(name)), () => studio.redraw())
    studio.form = new TableForm(bokeh_document.get_model_by_name("table answer"))
    document.addEventListener("table form", ({detail}) => studio.form.receive(JSON.parse(detail)))
    const show_message = () => { element("message").hidden = message.text === "" } // takes a line in narrow windows
    message.properties.text.change.connect(show_message)
    show_message()
    hide_token()
  } catch (error) {
    message.text = `The maps cannot be drawn: ${error.message}.`
    throw error
  }
}
