// The light and the dark theme of the studio: that of the system, or the one chosen last in this browser.
"use strict"

// Colours of Bokeh's widgets, whose styles are in shadow roots.
const WIDGETS = `
:host { --color: var(--text); --background-color: var(--raised); --hover-color: var(--line); --border-color: var(--edge);
  --icon-color: var(--muted); --default: var(--raised); --default-border: var(--edge); --default-hover: var(--line);
  --default-hover-border: var(--muted); --default-active: var(--line); --default-active-border: var(--muted);
  --inactive-bg: var(--line); --surface-background-color: var(--raised); color: var(--text); }
.bk-input, .bk-btn-default { background-color: var(--raised); border-color: var(--edge); color: var(--text); }
.bk-btn-default:hover, .bk-btn-default.bk-active { background-color: var(--line); color: var(--text); }
.bk-spin-btn.bk-spin-btn-up::before { border-bottom-color: var(--text); }
.bk-spin-btn.bk-spin-btn-down::before { border-top-color: var(--text); }
select:not([multiple]).bk-input { background-image: url('data:image/svg+xml;utf8,<svg viewBox="0 0 25 20" \
xmlns="http://www.w3.org/2000/svg"><path d="M 0,0 25,0 12.5,20 Z" fill="white" /></svg>'); }
.noUi-target { background: var(--line); border-color: var(--edge); box-shadow: none; }
.noUi-connect { background-color: var(--edge) !important; } /* Bokeh sets it on the element */
.noUi-handle { background: var(--muted); border-color: var(--muted); box-shadow: none; }
option { background: var(--raised); }
pre { color: var(--text); }`

// Return a colour mixed with a fraction of white.
function lighten(color, amount) {
  return "#" + rgb(color).map((part) => Math.round((1 - amount) * part + 255 * amount).toString(16).padStart(2, "0")).join("")
}

class Theme {
  constructor() {
    this.style = getComputedStyle(document.documentElement)
    this.sheet = new CSSStyleSheet()
    this.sheet.replaceSync(WIDGETS)
    this.original = new Map() // line colours of the light theme, by glyph
    this.show(preferred_scheme())
  }

  get dark() { return this.name === "dark" }

  // Return the value of a CSS variable of the page.
  color(variable) { return this.colors[variable] ??= this.style.getPropertyValue(variable).trim() }

  // Return the colour of points or lines on the background of the theme.
  adapt(color, amount = Number(this.color("--lighter"))) { return amount ? lighten(color, amount) : color }

  show(name) {
    this.name = name
    this.colors = {} // of CSS variables, read once
    document.documentElement.dataset.theme = name
    element("theme").textContent = this.dark ? "Light theme" : "Dark theme"
  }

  listen(figures, redraw) {
    this.figures = figures
    const update = (name) => {
      this.show(name)
      this.update()
      redraw()
    }
    element("theme").addEventListener("click", () => {
      const name = this.dark ? "light" : "dark"
      choose_scheme(name)
      update(name)
    })
    on_system_scheme(update)
    this.update()
  }

  update() {
    for (const root of shadow_roots(document.body)) {
      const others = root.adoptedStyleSheets.filter((sheet) => sheet !== this.sheet)
      root.adoptedStyleSheets = this.dark ? [...others, this.sheet] : others
    }
    for (const figure of this.figures) this.color_figure(figure)
  }

  color_figure(figure) {
    const [text, line, edge] = ["--text", "--line", "--edge"].map((name) => this.color(name))
    const local = {sync: false} // not sent to the server
    figure.title.setv({text_color: text}, local)
    for (const model of [...figure.below, ...figure.left]) {
      if (model.properties.label_text_color) model.setv({label_text_color: text}, local) // a legend
      else model.setv({axis_line_color: edge, major_tick_line_color: edge, major_label_text_color: text}, local)
    }
    for (const grid of figure.center) if (grid.properties.grid_line_color) grid.setv({grid_line_color: line}, local)
    for (const {glyph} of figure.renderers) {
      if (!this.original.has(glyph)) this.original.set(glyph, glyph.line_color.value)
      glyph.setv({line_color: {value: this.adapt(this.original.get(glyph), this.dark ? 0.45 : 0)}}, local)
    }
  }
}

// Return all shadow roots below an element.
function shadow_roots(parent) {
  return [...parent.querySelectorAll("*")].flatMap(({shadowRoot}) =>
    shadowRoot === null ? [] : [shadowRoot, ...shadow_roots(shadowRoot)])
}

const theme = new Theme()
