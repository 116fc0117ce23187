// Helpers shared by all pages: find an element, parse the JSON in it, add a child, save a file.
"use strict"

const element = (id) => document.getElementById(id)
const content = (id) => JSON.parse(element(id).textContent)

function add(parent, tag, text = "", properties = {}) {
  const child = Object.assign(document.createElement(tag), properties)
  child.append(text)
  parent.append(child)
  return child
}

// Let the browser save a file.
function save_file(blob, name) {
  const address = URL.createObjectURL(blob)
  const link = add(document.body, "a", "", {href: address, download: name, hidden: true})
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}
