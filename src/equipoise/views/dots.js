// The points of a page or of the studio, drawn by WebGL below a plot of Bokeh: they stay on the graphics card while the
// window moves.
"use strict"

const PLACE = `#version 300 es
in vec2 at;
in vec4 color;
uniform vec2 low, span; // the window, in units of the map
uniform float size; // the diameter of a dot, in pixels
uniform vec4 ink; // the colour of all, unless its last part is 0
out vec4 shade;
void main() {
  gl_Position = vec4(2.0 * (at - low) / span - 1.0, 0.0, 1.0);
  gl_PointSize = size + 1.0;
  shade = ink.a > 0.0 ? ink : color;
}`
const ROUND = `#version 300 es
precision highp float;
in vec4 shade;
uniform float size;
out vec4 drawn;
void main() {
  float away = length(gl_PointCoord - 0.5) * (size + 1.0);
  float cover = shade.a * clamp(0.5 * size + 0.5 - away, 0.0, 1.0);
  drawn = vec4(shade.rgb * cover, cover);
}`

class Dots {
  constructor(canvas) {
    this.canvas = canvas
    const gl = canvas.getContext("webgl2", {antialias: false})
    if (gl === null) throw new Error("this browser offers no WebGL 2, by which the points are drawn")
    this.gl = gl
    const program = gl.createProgram()
    for (const [kind, text] of [[gl.VERTEX_SHADER, PLACE], [gl.FRAGMENT_SHADER, ROUND]]) {
      const shader = gl.createShader(kind)
      gl.shaderSource(shader, text)
      gl.compileShader(shader)
      gl.attachShader(program, shader)
    }
    gl.linkProgram(program)
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program))
    gl.useProgram(program)
    gl.enable(gl.BLEND)
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA)
    this.uniforms = Object.fromEntries(["low", "span", "size", "ink"].map((n) => [n, gl.getUniformLocation(program, n)]))
    this.buffers = Object.fromEntries(["at", "color", "order", "found"].map((name) => [name, gl.createBuffer()]))
    this.counts = {order: 0, found: 0}
    for (const [name, size, type, share] of [["at", 2, gl.FLOAT, false], ["color", 4, gl.UNSIGNED_BYTE, true]]) {
      const place = gl.getAttribLocation(program, name)
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name])
      gl.enableVertexAttribArray(place)
      gl.vertexAttribPointer(place, size, type, share, 0, 0)
    }
  }

  // Places (2n floats) or colours (4n bytes) of the points.
  set(name, values) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name])
    this.gl.bufferData(this.gl.ARRAY_BUFFER, values, this.gl.STATIC_DRAW)
  }

  // Rows in the order in which they are drawn, or the rows that have a ring.
  list(name, rows) {
    this.counts[name] = rows.length
    this.gl.bindBuffer(this.gl.ELEMENT_ARRAY_BUFFER, this.buffers[name])
    this.gl.bufferData(this.gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from(rows), this.gl.STATIC_DRAW)
  }

  clear() {
    const {gl, canvas} = this
    const pixels = Math.max(devicePixelRatio, 1)
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((side) => Math.round(pixels * side))
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, {width, height})
    gl.viewport(0, 0, width, height)
    gl.clearColor(0, 0, 0, 0)
    gl.clear(gl.COLOR_BUFFER_BIT)
    return pixels
  }

  draw({low, span, size, ink, paper}) {
    const {gl} = this
    const pixels = this.clear()
    gl.uniform2f(this.uniforms.low, ...low)
    gl.uniform2f(this.uniforms.span, ...span)
    const stamp = (name, diameter, color) => {
      gl.uniform1f(this.uniforms.size, pixels * diameter)
      gl.uniform4f(this.uniforms.ink, ...color)
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[name])
      gl.drawElements(gl.POINTS, this.counts[name], gl.UNSIGNED_INT, 0)
    }
    stamp("order", size, [0, 0, 0, 0])
    if (this.counts.found) {
      stamp("found", size + 6, ink)
      stamp("found", size + 3, paper)
      stamp("found", size, [0, 0, 0, 0])
    }
  }
}

const rgb = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16))
const solid = (color) => [...rgb(color).map((part) => part / 255), 1]

// All of n rows in an order without meaning, so that the last class does not cover the others.
function scattered(n) {
  let step = Math.max(Math.floor(0.618 * n), 1)
  while (gcd(step, n) > 1) step++
  return Uint32Array.from({length: n}, (_, k) => k * step % n)
}

function gcd(a, b) { return b ? gcd(b, a % b) : a }

// Show a part of the map, and somewhat more, in a plot with equal axes.
function show({model, frame}, [left, right], [low, high], options) {
  const {width, height} = frame.bbox
  const unit = Math.max((right - left) / width, (high - low) / height) * 1.08 || 1 / width // of the map, per pixel
  const [x, y] = [(left + right) / 2, (low + high) / 2]
  model.x_range.setv({start: x - unit * width / 2, end: x + unit * width / 2}, options)
  model.y_range.setv({start: y - unit * height / 2, end: y + unit * height / 2}, options)
}

// What a plot shows, as `draw` wants it.
function shown({x_range, y_range}) {
  return {low: [x_range.start, y_range.start], span: [x_range.end - x_range.start, y_range.end - y_range.start]}
}

// Lay a canvas below the frame of a plot.
function lay(canvas, view) {
  const {left, top, width, height} = view.frame.bbox
  const inner = view.el.getBoundingClientRect(), outer = canvas.parentElement.getBoundingClientRect()
  Object.assign(canvas.style, {
    left: `${inner.left - outer.left + left}px`, top: `${inner.top - outer.top + top}px`,
    width: `${width}px`, height: `${height}px`,
  })
}

// Have something done whenever the frame of a plot has another size.
function on_resize(view, act) {
  let known = ""
  const resized = () => {
    const {width, height} = view.frame.bbox
    if (!(width > 0 && height > 0) || known === `${width} ${height}`) return
    known = `${width} ${height}`
    act()
  }
  for (const property of [view.model.properties.inner_width, view.model.properties.inner_height])
    property.change.connect(() => requestAnimationFrame(resized))
  resized()
}
