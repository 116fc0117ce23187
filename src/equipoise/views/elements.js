// What the scripts of all pages use: elements of the page, the JSON in one, a new one in another.
"use strict"

const element = (id) => document.getElementById(id)
const content = (id) => JSON.parse(element(id).textContent)

function add(parent, tag, text = "", properties = {}) {
  const child = Object.assign(document.createElement(tag), properties)
  child.append(text)
  parent.append(child)
  return child
}
