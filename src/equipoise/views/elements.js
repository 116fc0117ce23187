// Helpers shared by all pages: find an element, parse the JSON in it, add a child.
"use strict"

const element = (id) => document.getElementById(id)
const content = (id) => JSON.parse(element(id).textContent)

function add(parent, tag, text = "", properties = {}) {
  const child = Object.assign(document.createElement(tag), properties)
  child.append(text)
  parent.append(child)
  return child
}
