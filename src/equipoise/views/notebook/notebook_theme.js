// Whether the notebook around the widget is dark.
"use strict"

// Return whether the background behind a node is dark; where every ancestor is transparent, what the system prefers.
function is_dark_behind(node) {
  const paper = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d", {willReadFrequently: true})
  for (let at = node; at; at = at.parentNode ?? at.host) {
    if (!(at instanceof Element)) continue
    paper.clearRect(0, 0, 1, 1)
    paper.fillStyle = getComputedStyle(at).backgroundColor
    paper.fillRect(0, 0, 1, 1)
    const [r, g, b, alpha] = paper.getImageData(0, 0, 1, 1).data
    if (alpha > 127) return 0.299 * r + 0.587 * g + 0.114 * b < 128
  }
  return matchMedia("(prefers-color-scheme: dark)").matches
}

// Call a function when the theme of the notebook may have changed, also once its styles have loaded; return a function
// that ends this.
function watch_theme(callback) {
  let timers = []
  const changed = () => {
    timers.forEach(clearTimeout)
    timers = [0, 300, 1500].map((delay) => setTimeout(callback, delay))
  }
  const observer = new MutationObserver(changed)
  for (const node of [document.documentElement, document.body]) observer.observe(node, {attributes: true})
  const system = matchMedia("(prefers-color-scheme: dark)")
  system.addEventListener("change", changed)
  changed()
  return () => {
    observer.disconnect()
    timers.forEach(clearTimeout)
    system.removeEventListener("change", changed)
  }
}
