import { byName } from '../ui/format.js'

/** Paths of files and directories. A directory's path ends in a slash here; the root is empty. Pure. */

/** "a/b/c.txt" → "a/b/". @param {string} path */
export const parentOf = (path) => path.replace(/\/$/, '').replace(/[^/]*$/, '')

/** "a/b/" → "b". @param {string} path */
export const nameOf = (path) => path.replace(/\/$/, '').replace(/^.*\//, '')

/** "photo.jpg" → "photo (2).jpg" → "photo (3).jpg": a name that is likely free. @param {string} path */
export function nextName(path) {
  const parts = /^(.*?)(?: \((\d+)\))?((?:(?<=[^/])\.[^./]*)?\/?)$/s.exec(path)
  const [, stem = path, number = 1, end = ''] = parts ?? []
  return `${stem} (${Number(number) + 1})${end}`
}

/** The directories directly in one, in the order in which people count. @param {Api.DirectoryNode} tree @returns {Api.DirectoryNode[]} */
export const directoriesIn = (tree) =>
  (tree.children ?? [])
    .flatMap((child) => (child.type === 'directory' ? { ...child, path: `${child.path}/` } : []))
    .sort(byName)
