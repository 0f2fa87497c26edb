import { byName } from '../ui/format.js'

/** Paths of files and directories. A directory's path ends in a slash here; the root is empty. Pure. */

/** "a/b/c.txt" → "a/b/". @param {string} path */
export const parentOf = (path) => path.replace(/\/$/, '').replace(/[^/]*$/, '')

/** "a/b/" → "b". @param {string} path */
export const nameOf = (path) => path.replace(/\/$/, '').replace(/^.*\//, '')

/** "photo.jpg" → "photo (2).jpg": a name that is likely free. @param {string} path @param {number} number */
export function numberedPath(path, number) {
  const name = nameOf(path)
  const dot = name.lastIndexOf('.')
  const stem = dot > 0 ? name.slice(0, dot) : name
  return `${parentOf(path)}${stem} (${number})${dot > 0 ? name.slice(dot) : ''}`
}

/** Why a path is refused, before it is sent; undefined: it is fine. @param {string} path */
export function pathFault(path) {
  const segments = path.replace(/\/$/, '').split('/')
  if (path === '' || segments.some((segment) => segment === ''))
    return 'A part between slashes is empty'
  if (segments.some((segment) => segment === '.' || segment === '..'))
    return '. and .. are not allowed'
  if (/[\\\p{Cc}]/u.test(path)) return 'Backslashes and control characters are not allowed'
  if (['categories', 'tree', 'upload'].includes(segments[0] ?? ''))
    return `“${segments[0]}” is reserved as the first part`
  if (segments.length > 32) return 'At most 32 folders deep'
  const encoder = new TextEncoder()
  if (encoder.encode(path).length > 1024) return 'At most 1024 bytes long'
  return segments.some((segment) => encoder.encode(segment).length > 255)
    ? 'Each part has at most 255 bytes'
    : undefined
}

/** The address of a folder or a file: `#/files/img/logo.png`. @param {string} path @param {URLSearchParams} [query] */
export function hrefToPath(path, query = new URLSearchParams()) {
  const encoded = path.split('/').map(encodeURIComponent).join('/')
  return `#/files/${encoded}${query.size > 0 ? `?${query}` : ''}`
}

/** The directories directly in one, in the order in which people count. @param {Api.DirectoryNode} [tree] @returns {Api.DirectoryNode[]} */
export const directoriesIn = (tree) =>
  (tree?.children ?? []).filter((child) => child.type === 'directory').sort(byName)
