// The dialog about the columns of a file: which are compared, which colours the points, gaps and scaling.
// The studio sends what it shows as JSON, and gets the choices, or null if the user cancels.
"use strict"

const MISSING_TITLES = {
  error: "none expected: stop at the first gap",
  distance: "compare where both have a value",
  drop: "leave out rows with gaps",
  mean: "fill in the column's mean",
  median: "fill in the column's median",
}

class TableForm {
  constructor(model) {
    this.model = model // its tags are the answer
    this.dialog = element("table-form")
    this.form = this.dialog.querySelector("form")
    this.inputs = this.form.elements
    this.dialog.addEventListener("cancel", () => this.send(null)) // Escape
    element("table-cancel").addEventListener("click", () => {
      this.send(null)
      this.dialog.close()
    })
    this.form.addEventListener("submit", (event) => {
      event.preventDefault()
      this.submit()
    })
    this.form.addEventListener("change", () => this.update())
    element("table-all").addEventListener("change", ({target}) => {
      for (const {box} of this.rows) if (!box.disabled) box.checked = target.checked
    })
  }

  receive(state) {
    if (state.closed) return this.dialog.close()
    if (state.preview) this.open(state)
    this.show_error(state.error)
  }

  open({title, preview, start, metrics, max_classes, row_names}) {
    const may_have_classes = ({distinct, kind}) => distinct > 1 && distinct <= max_classes && kind !== row_names
    Object.assign(this, {preview, metrics})
    element("table-title").textContent = title
    const rows = preview.rows.toLocaleString("en"), all = preview.is_whole ? "" : "the first "
    const unlisted = preview.unlisted ? `, ${preview.unlisted.toLocaleString("en")} more columns of numbers` : ""
    element("table-facts").textContent = preview.rows ? `${all}${rows} rows${unlisted}` : ""
    this.fill("label", [["", "nothing"], ...preview.columns.filter(may_have_classes).map(({name}) => [name, name])])
    this.fill("id", [["", "row numbers"], ...preview.columns.map(({name}) => [name, name])])
    element("table-columns").hidden = preview.columns.length === 0
    for (const name of ["label", "id"]) this.inputs[name].closest("label").hidden = preview.columns.length === 0
    const body = element("table-rows")
    body.replaceChildren()
    this.rows = preview.columns.map((column) => this.add_row(body, column, !start.exclude.includes(column.name)))
    this.inputs.label.value = start.label ?? ""
    this.inputs.id.value = start.id ?? ""
    this.fill("metric", Object.values(metrics).flat())
    this.inputs.metric.value = start.metric
    this.inputs.standardize.value = String(start.standardize)
    this.missing = start.missing
    this.update()
    if (!this.dialog.open) this.dialog.showModal()
    this.inputs[preview.columns.length ? "label" : "metric"].focus()
  }

  add_row(body, column, is_checked) {
    const row = add(body, "tr"), label = add(add(row, "td"), "label")
    const box = add(label, "input", "", {type: "checkbox", checked: is_checked})
    label.append(` ${column.name}`)
    add(row, "td", column.kind)
    add(row, "td", column.examples, {className: "examples"})
    const notes = [column.gaps ? `${column.gaps.toLocaleString("en")} gaps` : "", column.useless]
    const note = add(row, "td", notes.filter(Boolean).join("; "))
    return {column, box, note}
  }

  // Put options (value, title) into a menu, and keep its value if it is still there.
  fill(name, options) {
    const menu = this.inputs[name], value = menu.value
    menu.replaceChildren()
    for (const [value, title] of options) add(menu, "option", title, {value})
    if (options.some(([other]) => other === value)) menu.value = value
  }

  // Show the choices that are possible with those made so far.
  update() {
    const {label, id, metric, missing, standardize} = this.inputs
    for (const {box, column} of this.rows) {
      const has_role = [label.value, id.value].includes(column.name)
      if (has_role) box.checked = false
      box.disabled = has_role
    }
    const chosen = this.rows.filter(({box}) => box.checked).map(({column}) => column)
    const boxes = this.rows.filter(({box}) => !box.disabled)
    Object.assign(element("table-all"), {
      checked: chosen.length === boxes.length, indeterminate: chosen.length > 0 && chosen.length < boxes.length,
    })
    const is_mixed = metric.value === "mixed", left_out = chosen.filter(({is_number}) => !is_number && !is_mixed)
    const compared = this.rows.length ? chosen.length - left_out.length + this.preview.unlisted : this.preview.unlisted
    const gaps = chosen.filter((column) => column.gaps && !left_out.includes(column))
    const ways = Object.keys(MISSING_TITLES).filter((way) =>
      way === "error" ? gaps.length === 0 && !this.preview.is_whole && !is_mixed
        : way !== "distance" || is_mixed || metric.value === "euclidean")
    const known = missing.value || this.missing
    this.fill("missing", ways.map((way) => [way, MISSING_TITLES[way]]))
    missing.value = ways.includes(known) ? known : ways[0]
    const has_gaps = gaps.length > 0 || (this.rows.length > 0 && !this.preview.is_whole)
    missing.closest("label").hidden = !has_gaps
    this.has_gaps = has_gaps
    const is_scaled = !is_mixed && !(has_gaps && missing.value === "distance")
    standardize.disabled = !is_scaled
    if (!is_scaled) standardize.value = "false"
    element("table-notes").textContent = [
      `${compared.toLocaleString("en")} ${compared === 1 ? "column is" : "columns are"} compared.`,
      left_out.length ? `This metric compares only numbers; ${names(left_out)} left out.` : "",
      is_mixed ? "Mixed compares numbers in units of their ranges, and categories as equal or different." : "",
      standardize.value === "true" && this.preview.reason ? `Standardised, because ${this.preview.reason}.` : "",
    ].filter(Boolean).join(" ")
    element("table-submit").disabled = compared === 0
  }

  submit() {
    const {label, id, metric, missing, standardize} = this.inputs
    const is_mixed = metric.value === "mixed"
    const is_used = ({column}) => [label.value, id.value].includes(column.name)
    this.show_error("")
    element("table-submit").disabled = true
    element("table-notes").textContent = "Reading the table …"
    this.send({
      label: label.value || null, id: id.value || null,
      exclude: this.rows.filter((row) => !is_used(row) && !(row.box.checked && (is_mixed || row.column.is_number)))
        .map(({column}) => column.name),
      metric: metric.value, missing: this.has_gaps ? missing.value : "error", standardize: standardize.value === "true",
    })
  }

  send(answer) { this.model.tags = [JSON.stringify(answer), this.sent = (this.sent ?? 0) + 1] }

  show_error(text) {
    const place = element("table-error")
    place.textContent = text
    place.hidden = text === ""
    if (text === "") return
    this.update()
    place.scrollIntoView({block: "nearest"})
  }
}

// Return the names of columns in quotes, with the verb.
function names(columns) {
  const first = columns.slice(0, 3).map(({name}) => `“${name}”`).join(", ")
  const more = columns.length > 3 ? ` and ${columns.length - 3} more` : ""
  return `${first}${more} ${columns.length === 1 ? "is" : "are"}`
}
