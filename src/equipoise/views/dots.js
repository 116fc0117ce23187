// Draws the points of a page or of the studio with WebGL, below a Bokeh plot. The points stay on the GPU while the view
// moves.
"use strict"

const REACH = 12 // maximum distance in pixels between the mouse and the point under it
const OPACITY = 230, FAINT = 30 // of 255: points, and unselected points during a selection

const VERTEX_SHADER = `#version 300 es
in vec2 at;
in vec4 color;
in float near; // factor of the size in perspective, 1 in the plane
in float mark; // 0 is a disk, for the others see MARK_CORNERS
uniform vec2 low, span; // the visible region, in map coordinates
uniform float size; // the diameter of a dot, in pixels
uniform vec4 override; // colour of all points, unless its alpha is 0
out vec4 fill;
flat out float diameter;
flat out int shape;
flat out float side; // of the square in which the mark is drawn, in pixels
void main() {
  gl_Position = vec4(2.0 * (at - low) / span - 1.0, 0.0, 1.0);
  shape = int(mark);
  diameter = near * size;
  side = (shape == 0 ? diameter : 1.6 * diameter) + 1.0;
  gl_PointSize = side;
  fill = override.a > 0.0 ? override : color;
  fill.a *= clamp(1.0 + 1.6 * (near - 1.0), 0.3, 1.0); // far points are faint
}`
const FRAGMENT_SHADER = `#version 300 es
precision highp float;
in vec4 fill;
flat in int shape;
flat in float side;
flat in float diameter;
out vec4 pixel;
void main() {
  vec2 p = (gl_PointCoord - 0.5) * side;
  vec2 q = abs(p);
  float r = 0.5 * diameter;
  float outside = length(p) - r; // distance to the outline, negative inside; all marks have the same area
  if (shape == 1) outside = max(q.x, q.y) - 0.886 * r;
  if (shape == 2) outside = 0.7071 * (q.x + q.y) - 0.886 * r;
  if (shape == 3) outside = max(p.y, 0.866 * q.x - 0.5 * p.y) - 0.778 * r;
  if (shape == 4) outside = max(-p.y, 0.866 * q.x + 0.5 * p.y) - 0.778 * r;
  if (shape == 5) outside = max(max(q.x, q.y) - 1.25 * r, min(q.x, q.y) - 0.368 * r);
  float alpha = fill.a * clamp(0.5 - outside, 0.0, 1.0);
  pixel = vec4(fill.rgb * alpha, alpha);
}`

// The outlines of the marks other than the disk, y downwards, with the area of a disk of radius 1: square, diamond,
// triangle, triangle upside down, plus.
const [SQUARE, DIAMOND, INNER, OUTER, HALF, ARM, WIDTH] = [0.886, 1.253, 0.778, 1.555, 1.347, 1.25, 0.368]
const MARK_CORNERS = [
  null,
  [[-SQUARE, -SQUARE], [SQUARE, -SQUARE], [SQUARE, SQUARE], [-SQUARE, SQUARE]],
  [[0, -DIAMOND], [DIAMOND, 0], [0, DIAMOND], [-DIAMOND, 0]],
  [[0, -OUTER], [HALF, INNER], [-HALF, INNER]],
  [[0, OUTER], [HALF, -INNER], [-HALF, -INNER]],
  [[-WIDTH, -ARM], [WIDTH, -ARM], [WIDTH, -WIDTH], [ARM, -WIDTH], [ARM, WIDTH], [WIDTH, WIDTH], [WIDTH, ARM],
    [-WIDTH, ARM], [-WIDTH, WIDTH], [-ARM, WIDTH], [-ARM, -WIDTH], [-WIDTH, -WIDTH]],
]

class Dots {
  constructor(canvas) {
    this.canvas = canvas
    const gl = canvas.getContext("webgl2", {antialias: false})
    if (gl === null) throw new Error("this browser does not support WebGL 2; use another browser or a newer version")
    this.gl = gl
    const program = this.program = gl.createProgram()
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX_SHADER], [gl.FRAGMENT_SHADER, FRAGMENT_SHADER]]) {
      const shader = gl.createShader(kind)
      gl.shaderSource(shader, text)
      gl.compileShader(shader)
      gl.attachShader(program, shader)
    }
    gl.linkProgram(program)
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program))
    gl.useProgram(program)
    gl.vertexAttrib1f(gl.getAttribLocation(program, "near"), 1) // while it has no buffer
    gl.enable(gl.BLEND)
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA)
    this.uniforms = Object.fromEntries(["low", "span", "size", "override"].map((n) => [n, gl.getUniformLocation(program, n)]))
    this.buffers = Object.fromEntries(["at", "color", "mark", "near", "order", "found"].map((name) => [name, gl.createBuffer()]))
    this.counts = {order: 0, found: 0}
    for (const [name, size, type, normalized] of [["at", 2, gl.FLOAT, false], ["color", 4, gl.UNSIGNED_BYTE, true]]) {
      const location = gl.getAttribLocation(program, name)
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name])
      gl.enableVertexAttribArray(location)
      gl.vertexAttribPointer(location, size, type, normalized, 0, 0)
    }
  }

  // Set the positions ("at", 2n floats), colours ("color", 4n bytes), marks ("mark", n bytes) or factors of the size
  // ("near", n floats) of the points. Without marks, all are disks, and without factors, of the same size.
  set(name, values) {
    if (name === "mark") this.enable("mark", this.gl.UNSIGNED_BYTE)
    if (name === "near") this.enable("near", this.gl.FLOAT)
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name])
    this.gl.bufferData(this.gl.ARRAY_BUFFER, values, this.gl.STATIC_DRAW)
  }

  // Read one number per point from a buffer.
  enable(name, type) {
    const {gl} = this, location = gl.getAttribLocation(this.program, name)
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name])
    gl.enableVertexAttribArray(location)
    gl.vertexAttribPointer(location, 1, type, false, 0, 0)
  }

  // Set the rows to draw, in this order ("order"), or the rows to draw with a ring ("found").
  set_rows(name, rows) {
    this.counts[name] = rows.length
    this.gl.bindBuffer(this.gl.ELEMENT_ARRAY_BUFFER, this.buffers[name])
    this.gl.bufferData(this.gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from(rows), this.gl.STATIC_DRAW)
  }

  // Clear the canvas and return its pixels per pixel of the page, at least `sharpness`.
  clear(sharpness = 1) {
    const {gl, canvas} = this
    const pixels = Math.max(devicePixelRatio, sharpness)
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((side) => Math.round(pixels * side))
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, {width, height})
    gl.viewport(0, 0, width, height)
    gl.clearColor(0, 0, 0, 0)
    gl.clear(gl.COLOR_BUFFER_BIT)
    return pixels
  }

  // Draw the map once for each of the translations `offsets`, with at most the last `most` of its points.
  draw({low, span, size, ring, background, offsets = [[0, 0]], sharpness = 1, most = Infinity}) {
    const {gl} = this
    const pixels = this.clear(sharpness)
    gl.uniform2f(this.uniforms.span, ...span)
    const draw_rows = (name, diameter, color) => {
      gl.uniform1f(this.uniforms.size, pixels * diameter)
      gl.uniform4f(this.uniforms.override, ...color)
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[name])
      const count = name === "order" ? Math.min(most, this.counts.order) : this.counts[name]
      for (const [x, y] of offsets) {
        gl.uniform2f(this.uniforms.low, low[0] - x, low[1] - y)
        gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 4 * (this.counts[name] - count)) // 4 bytes for each row
      }
    }
    draw_rows("order", size, [0, 0, 0, 0])
    if (this.counts.found) {
      draw_rows("found", size + 6, ring)
      draw_rows("found", size + 3, background)
      draw_rows("found", size, [0, 0, 0, 0])
    }
  }
}

const rgb = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16))
const opaque = (color) => [...rgb(color).map((part) => part / 255), 1]

// Return 0 … n − 1 in a fixed scrambled order, so that the last class does not cover the others.
function scrambled(n) {
  let step = Math.max(Math.floor(0.618 * n), 1)
  while (gcd(step, n) > 1) step++
  return Uint32Array.from({length: n}, (_, k) => k * step % n)
}

function gcd(a, b) { return b ? gcd(b, a % b) : a }

// Set the ranges of a plot with equal axes to show a region of the map with a margin of 8 %.
function show_region({model, frame}, [left, right], [low, high], options) {
  const {width, height} = frame.bbox
  const unit = Math.max((right - left) / width, (high - low) / height) * 1.08 || 1 / width // map units per pixel
  const [x, y] = [(left + right) / 2, (low + high) / 2]
  model.x_range.setv({start: x - unit * width / 2, end: x + unit * width / 2}, options)
  model.y_range.setv({start: y - unit * height / 2, end: y + unit * height / 2}, options)
}

// Return the visible region of a plot, for `draw`.
function visible_region({x_range, y_range}) {
  return {low: [x_range.start, y_range.start], span: [x_range.end - x_range.start, y_range.end - y_range.start]}
}

// Align a canvas with the frame of a plot.
function align_canvas(canvas, view) {
  const {left, top, width, height} = view.frame.bbox
  const inner = view.el.getBoundingClientRect(), outer = canvas.parentElement.getBoundingClientRect()
  Object.assign(canvas.style, {
    left: `${inner.left - outer.left + left}px`, top: `${inner.top - outer.top + top}px`,
    width: `${width}px`, height: `${height}px`,
  })
}

// Call a function whenever the size of a plot's frame changes.
function on_resize(view, callback) {
  let last = ""
  const resized = () => {
    const {width, height} = view.frame.bbox
    if (!(width > 0 && height > 0) || last === `${width} ${height}`) return
    last = `${width} ${height}`
    callback()
  }
  for (const property of [view.model.properties.inner_width, view.model.properties.inner_height])
    property.change.connect(() => requestAnimationFrame(resized))
  resized()
}
