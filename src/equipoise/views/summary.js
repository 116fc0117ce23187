// Summary of the selected points of a page: how many of each class, and the numbers in which they differ from the rest.
"use strict"

const MAX_COUNTED = 8 // classes in the summary
const MAX_COMPARED = 12 // numeric columns in the summary
const MAX_SORTED = 20_000 // values of which a median is computed; of more values, evenly spaced ones

// Return [name, number of selected points, number of points] for the classes of a column, by the first number.
function class_counts({names, values}, rows) {
  const chosen = new Uint32Array(names.length), all = new Uint32Array(names.length)
  for (const code of values) if (code >= 0) all[code]++
  for (const i of rows) if (values[i] >= 0) chosen[values[i]]++
  const codes = [...names.keys()].filter((code) => chosen[code] > 0).sort((a, b) => chosen[b] - chosen[a] || a - b)
  return codes.map((code) => [names[code], chosen[code], all[code]])
}

// Return the known values of some rows in ascending order.
function sorted_values(values, rows) {
  const step = Math.max(1, Math.ceil(rows.length / MAX_SORTED))
  const taken = new Float64Array(Math.ceil(rows.length / step))
  let count = 0
  for (let k = 0; k < rows.length; k += step) {
    const value = values[rows[k]]
    if (!Number.isNaN(value)) taken[count++] = value
  }
  return taken.subarray(0, count).sort()
}

function quantile(sorted, q) {
  const at = q * (sorted.length - 1), below = Math.floor(at)
  return sorted[below] + (at - below) * (sorted[Math.min(below + 1, sorted.length - 1)] - sorted[below])
}

// Return [column, median of the rows, median of the rest] for numeric columns; the column in which the medians are
// farthest apart, in units of its interquartile range, comes first.
function compared_medians(columns, rows, rest) {
  const lines = []
  for (const column of columns) {
    if (column.kind !== "number") continue
    const chosen = sorted_values(column.values, rows), others = sorted_values(column.values, rest)
    if (!chosen.length || !others.length) continue
    const [a, b] = [quantile(chosen, 0.5), quantile(others, 0.5)]
    const spread = Math.max(...[chosen, others].map((sorted) => quantile(sorted, 0.75) - quantile(sorted, 0.25)))
    lines.push([a === b ? 0 : Math.abs(a - b) / (spread || Number.MIN_VALUE), column, a, b])
  }
  lines.sort((a, b) => b[0] - a[0])
  return lines.map((line) => line.slice(1))
}

// Show the summary of the selected rows of a page, or nothing if none is selected.
function show_summary(page) {
  const box = element("summary"), {selection} = page, {columns} = page.facts
  box.replaceChildren()
  if (!selection.length) return
  const classes = page.colors.column?.kind === "class" ? page.colors.column
    : columns.find(({kind, colored}) => kind === "class" && colored)
  if (classes) {
    const counts = class_counts(classes, selection)
    const table = summary_table(box, classes.name, ["selected", "of"])
    for (const [name, chosen, all] of counts.slice(0, MAX_COUNTED))
      summary_row(table, name, [chosen.toLocaleString("en"), all.toLocaleString("en")])
    if (counts.length > MAX_COUNTED) add(box, "p", `and ${counts.length - MAX_COUNTED} more classes`, {className: "muted"})
  }
  const chosen = new Uint8Array(page.x.length)
  for (const i of selection) chosen[i] = 1
  const lines = compared_medians(columns, selection, page.rows((i) => !chosen[i]))
  if (!lines.length) return
  const table = summary_table(box, "median", ["selected", "rest"])
  for (const [column, a, b] of lines.slice(0, MAX_COMPARED))
    summary_row(table, column.name, [a, b].map((value) => page.format(column, value)))
  const more = lines.length - MAX_COMPARED
  if (more > 0) add(box, "p", `and ${more} more columns, which differ less`, {className: "muted"})
}

function summary_table(parent, title, heads) {
  const table = add(parent, "table"), line = add(table, "tr")
  for (const head of [title, ...heads]) add(line, "th", head, {scope: "col"})
  return table
}

function summary_row(table, name, values) {
  const line = add(table, "tr")
  add(line, "th", name, {scope: "row"})
  for (const value of values) add(line, "td", value)
}
