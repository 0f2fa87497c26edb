import { currentRoute, decode } from '../core/router.js'
import { parentOf } from './paths.js'

/**
 * What the address of the files shows: a folder, and the file whose details are open. A search keeps its folder, and
 * names the file in its query.
 */
export function currentPath() {
  const { path, query } = currentRoute()
  const whole = path.split('/').slice(2).map(decode).join('/')
  const folder = /(?:^|\/)$/.test(whole) ? whole : parentOf(whole)
  return { folder, file: query.get('file') ?? (whole === folder ? '' : whole) }
}
