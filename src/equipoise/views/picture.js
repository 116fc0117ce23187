// Save the visible part of a map as a PNG file, with its title, class names and legend, at twice the resolution.
"use strict"

const SHARP = 2 // pixels of the file per pixel of the page
const LEGEND_WIDTH = 190, LINE = 19, MARGIN = 12 // pixels of the page

function draw_picture(page) {
  const {facts, theme, names, colors} = page
  const {background, text, missing} = facts.themes[theme]
  const source = element("dots"), {left: inset, top: above, width, height} = page.view.frame.bbox
  const {column} = colors, head = document.title ? 34 : MARGIN
  const rows = column?.kind === "class" ? Math.floor((height - LINE) / LINE) : 0
  const canvas = document.createElement("canvas")
  canvas.width = SHARP * (width + 2 * MARGIN + (column ? LEGEND_WIDTH : 0))
  canvas.height = SHARP * (height + head + MARGIN)
  const pen = canvas.getContext("2d")
  pen.scale(SHARP, SHARP)
  pen.fillStyle = background
  pen.fillRect(0, 0, canvas.width, canvas.height)
  pen.textBaseline = "middle"
  const write = (words, x, y, font, color) => Object.assign(pen, {font, fillStyle: color}).fillText(words, x, y)
  const family = "system-ui, sans-serif"
  write(document.title, MARGIN, head / 2, `bold 16px ${family}`, text)
  page.draw_now(SHARP)
  pen.drawImage(source, MARGIN, head, width, height)
  page.draw_now()
  pen.strokeStyle = missing
  pen.strokeRect(MARGIN, head, width, height)
  const {x_scale, y_scale} = page.view.frame
  pen.textAlign = "center"
  names.data.text.forEach((name, i) => {
    const x = MARGIN - inset + x_scale.compute(names.data.x[i]), y = head - above + y_scale.compute(names.data.y[i])
    pen.font = `bold 13px ${family}`
    Object.assign(pen, {lineWidth: 4, lineJoin: "round", strokeStyle: background}).strokeText(name, x, y)
    write(name, x, y, pen.font, text)
  })
  pen.textAlign = "left"
  const left = width + 2 * MARGIN
  if (column) write(column.name, left, head + LINE / 2, `bold 13px ${family}`, text)
  if (column?.kind === "number") {
    const ramp = pen.createLinearGradient(left, 0, left + LEGEND_WIDTH - MARGIN, 0)
    colors.palette().forEach((color, i, all) => ramp.addColorStop(i / (all.length - 1), color))
    pen.fillStyle = ramp
    pen.fillRect(left, head + LINE + 4, LEGEND_WIDTH - MARGIN, 14)
    write(page.format(column, column.low), left, head + 2 * LINE + 12, `13px ${family}`, text)
    pen.textAlign = "right"
    write(page.format(column, column.high), left + LEGEND_WIDTH - MARGIN, head + 2 * LINE + 12, `13px ${family}`, text)
  } else if (column) {
    const palette = colors.palette(), all = column.names.length, shown = all <= rows ? all : rows - 1
    for (let code = 0; code < shown; code++) {
      const y = head + (code + 1.5) * LINE
      pen.fillStyle = palette[code]
      pen.fill(mark_path(column.marks[code], left + 6, y, 5))
      write(column.names[code], left + 18, y, `13px ${family}`, text)
    }
    if (shown < all) write(`and ${all - shown} more`, left + 18, head + (shown + 1.5) * LINE, `13px ${family}`, text)
  }
  return canvas
}

// Return the outline of a mark of dots.js with the area of a circle of radius r around (x, y).
function mark_path(mark, x, y, r) {
  const path = new Path2D()
  const outline = MARK_CORNERS[mark]
  if (outline) outline.forEach(([a, b], i) => path[i ? "lineTo" : "moveTo"](x + r * a, y + r * b))
  else path.arc(x, y, r, 0, 2 * Math.PI)
  path.closePath()
  return path
}

function save_picture(page) {
  draw_picture(page).toBlob((blob) => save_file(blob, `${document.title || "map"}.png`), "image/png")
}
