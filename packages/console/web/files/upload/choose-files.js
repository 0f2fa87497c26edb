import { readInput } from './dropped-files.js'
import { uploads } from './upload-queue.js'

/**
 * Opens the browser's dialog and uploads what is chosen.
 * @param {string} folder
 * @param {boolean} isWholeFolder
 */
export function chooseFiles(folder, isWholeFolder) {
  const input = document.createElement('input')
  input.type = 'file'
  input.multiple = true
  input.webkitdirectory = isWholeFolder
  input.addEventListener('change', () => {
    if (input.files) uploads.add(folder, readInput(input.files))
  })
  input.click()
}
