// Let the user choose a file and upload it; the response has the name of the data set or an error message.
const show = (text) => { message.text = text }
const input = document.createElement("input")
input.type = "file"
input.accept = ".csv,.tsv,.npy"
input.addEventListener("change", async () => {
  const file = input.files[0]
  if (file == null) return
  if (file.size > limit) return show(`${file.name} exceeds the upload limit of ${limit_text}; use fewer rows or columns`)
  show(`Uploading ${file.name} …`)
  try {
    const query = new URLSearchParams({session, name: file.name})
    const response = await fetch(`upload?${query}`, {method: "POST", body: file})
    const isJson = response.headers.get("Content-Type")?.includes("json")
    const result = isJson ? await response.json() : {message: response.statusText}  // rejected requests return HTML
    if (response.ok) inbox.tags = [result.data]
    else show(result.message)
  } catch (error) {
    show(`The upload failed: ${error.message}`)
  }
})
input.click()
