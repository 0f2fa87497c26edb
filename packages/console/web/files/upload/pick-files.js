import { uploads } from './upload-queue.js'

/**
 * Files with the path that they have inside of what was dropped or chosen.
 * @typedef {{ file: File, path: string }} PickedFile
 */

/**
 * All files of a drop; folders are walked with everything below them.
 * @param {DataTransfer} transfer
 * @returns {Promise<PickedFile[]>}
 */
export async function readDrop(transfer) {
  // The entries are gone after the event: they are taken before the first await.
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  if (entries.length === 0) return [...transfer.files].map((file) => ({ file, path: file.name }))
  const found = await Promise.all(entries.map((entry) => readEntry(entry)))
  return found.flat()
}

/** @param {FileSystemEntry} entry @returns {Promise<PickedFile[]>} */
async function readEntry(entry) {
  const path = entry.fullPath.replace(/^\//, '')
  if (entry.isFile) {
    const fileEntry = /** @type {FileSystemFileEntry} */ (entry)
    const file = await new Promise((resolve, reject) => fileEntry.file(resolve, reject))
    return [{ file, path }]
  }
  const children = await readAllEntries(
    /** @type {FileSystemDirectoryEntry} */ (entry).createReader(),
  )
  const found = []
  for (const child of children) found.push(...(await readEntry(child)))
  return found
}

// A reader hands out its entries in portions, the last one empty.
/** @param {FileSystemDirectoryReader} reader @returns {Promise<FileSystemEntry[]>} */
async function readAllEntries(reader) {
  const all = []
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
    if (some.length === 0) return all
    all.push(...some)
  }
}

/** Opens the browser's dialog and uploads what is chosen. @param {string} folder @param {boolean} isWholeFolder */
export function chooseFiles(folder, isWholeFolder) {
  const input = document.createElement('input')
  input.type = 'file'
  input.multiple = true
  input.webkitdirectory = isWholeFolder
  input.addEventListener('change', () => {
    const chosen = [...(input.files ?? [])]
    // With folders, each file knows its path in them.
    uploads.add(
      folder,
      chosen.map((file) => ({ file, path: file.webkitRelativePath || file.name })),
    )
  })
  input.click()
}
