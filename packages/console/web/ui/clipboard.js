import { toast } from './toast.js'

/** Copies a text and says so. @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text)
    toast(`${what} copied`)
  } catch {
    toast(`This browser does not allow copying here: select the text instead.`, 'bad')
  }
}

/** Offers a text as a file to save. @param {string} name @param {string} text */
export function saveText(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
