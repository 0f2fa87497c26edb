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

/** What an input chose: with folders, each file knows its path in them. @param {FileList} files @returns {PickedFile[]} */
export const readInput = (files) =>
  [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }))

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
