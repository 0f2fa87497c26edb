import { uploads } from './upload-queue.js'

/**
 * Files with the path that they have inside of what was dropped or chosen.
 * @typedef {{ file: File, path: string }} PickedFile
 */

/**
 * All files of a drop; folders are walked with everything below them.
 * @param {DataTransfer} transfer
 */
export async function readDrop(transfer) {
  // The entries are gone after the event: they are taken before the first await.
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  /** @type {PickedFile[]} */
  const found = []
  for (const entry of entries) for await (const picked of filesIn(entry)) found.push(picked)
  return found
}

/** @param {FileSystemEntry} entry @returns {AsyncGenerator<PickedFile>} */
async function* filesIn(entry) {
  if (entry.isFile) {
    const { file } = /** @type {FileSystemFileEntry} */ (entry)
    yield { file: await new Promise(file.bind(entry)), path: entry.fullPath.slice(1) }
    return
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader()
  for (;;) {
    // In portions, the last one empty.
    /** @type {FileSystemEntry[]} */
    const children = await new Promise(reader.readEntries.bind(reader))
    if (children.length === 0) return
    for (const child of children) yield* filesIn(child)
  }
}

/** Opens the browser's dialog and uploads what is chosen. @param {string} folder @param {boolean} isWholeFolder */
export function chooseFiles(folder, isWholeFolder) {
  const options = { type: 'file', multiple: true, webkitdirectory: isWholeFolder }
  const input = Object.assign(document.createElement('input'), options)
  input.addEventListener('change', () => {
    // With folders, each file knows its path in them.
    const pathOf = (/** @type {File} */ file) => file.webkitRelativePath || file.name
    const chosen = [...(input.files ?? [])].map((file) => ({ file, path: pathOf(file) }))
    uploads.add(folder, chosen)
  })
  input.click()
}
