// Ask for a file and send it; the answer is the name of a data set, or why there is none.
const say = (text) => { message.text = text }
const input = document.createElement("input")
input.type = "file"
input.accept = ".csv,.npy"
input.addEventListener("change", async () => {
  const file = input.files[0]
  if (file == null) return
  if (file.size > limit) return say(`${file.name} is larger than ${words}, the limit of this studio`)
  say(`Uploading ${file.name} …`)
  try {
    const query = new URLSearchParams({session, name: file.name})
    const answer = await fetch(`upload?${query}`, {method: "POST", body: file})
    const told = await answer.json()
    if (answer.ok) inbox.tags = [told.data]
    else say(told.message)
  } catch (error) {
    say(`The upload failed: ${error.message}`)
  }
})
input.click()
