// Whether a page is light or dark: like the system, or as chosen last in this browser.
"use strict"

const SCHEME_KEY = "equipoise-theme"
const DARK_QUERY = matchMedia("(prefers-color-scheme: dark)")

// Return the scheme that the user chose, or null; the browser may forbid to store it.
function chosen_scheme() {
  try {
    const name = localStorage.getItem(SCHEME_KEY)
    return name === "dark" || name === "light" ? name : null
  } catch { return null }
}

function choose_scheme(name) {
  try { localStorage.setItem(SCHEME_KEY, name) } catch { /* it lasts until the page is closed */ }
}

// Return "dark" or "light".
function preferred_scheme() { return chosen_scheme() ?? (DARK_QUERY.matches ? "dark" : "light") }

// Call a function with the new scheme whenever that of the system changes, unless the user has chosen one.
function on_system_scheme(callback) {
  DARK_QUERY.addEventListener("change", ({matches}) => { if (chosen_scheme() === null) callback(matches ? "dark" : "light") })
}
