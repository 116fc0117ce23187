// Keys for the maps of the studio, for use without a mouse: a map takes the focus by Tab.
"use strict"

// Act on a key pressed on a map; return whether it is one of the map's.
function act_on_key(key, scene, choose, play) {
  if (move_by_key(key, scene.plot, {sync: false})) return true // not sent to the server
  if (key === "0") scene.follow()
  else if (key === "n" || key === "p") choose(scene.row_after(key === "n" ? 1 : -1))
  else if (key === "Escape") choose(-1)
  else if (key === " ") play()
  else return false
  return true
}
