import { encodePath, request, session } from '../api/client.js'
import { urlOf } from '../api/transport.js'
import { currentRoute, decode, hrefTo } from '../core/router.js'
import { RouteView } from '../core/view.js'
import { select } from '../ui/form.js'
import { parentOf } from './paths.js'

/**
 * What the address of the files shows: a folder, and the file whose details are open. A search keeps its folder, and
 * names the file in its query. Above the folders of the person it is the first one of them.
 */
export function currentPath() {
  const { path, query } = currentRoute()
  const whole = path.split('/').slice(2).map(decode).join('/')
  const above = /(?:^|\/)$/.test(whole) ? whole : parentOf(whole)
  const folder = ownFolders()?.find((own) => own.startsWith(above)) ?? above
  return { folder, file: query.get('file') ?? (whole === above ? '' : whole) }
}

/** The folders that the person is limited to; undefined: all. */
export const ownFolders = () => session.loginOf('files')?.folders

/** The folder that a view covers, where the person is limited to some. @param {RouteView} view */
export const prefixOf = (view) => view.query.get('prefix') ?? ownFolders()?.[0]

/** The choice between those folders. @param {RouteView} view */
export const prefixChoice = (view) =>
  ownFolders() && select('Folder', ownFolders() ?? [], prefixOf(view) ?? '', (prefix) => view.open({ prefix }))

/** The address of a folder or a file: `#/files/img/logo.png`. @param {string} path @param {Record<string, string>} [query] */
export const hrefToPath = (path, query) => hrefTo(['files', ...path.split('/')], query)

/** Dispatches `change` after files were stored, moved or deleted here, so that listings load again. */
export const filesChanged = new EventTarget()

/** A view that also loads again after files were changed here. */
export class FilesView extends RouteView {
  opened() {
    filesChanged.addEventListener('change', () => this.reload(), { signal: this.signal })
    super.opened()
  }
}

/** Announces a change once the views have followed the address, so that nobody loads what has just moved away. */
export const announceFilesChanged = () => setTimeout(() => filesChanged.dispatchEvent(new Event('change')))

/**
 * The bytes of a file, also of a private one, or as they were after a change.
 * @param {string} path
 * @param {import('../api/transport.js').CallOptions & { change?: number }} [options]
 */
export const getContent = (path, { change, ...options } = {}) =>
  change === undefined
    ? getBlob(`/static/${encodePath(path)}`, options)
    : getBlob('/api/history/content', { query: { path, change } })

/** @param {string} path @param {import('../api/transport.js').CallOptions} options */
export async function getBlob(path, options) {
  const { body } = await request('files', path, { ...options, asBlob: true })
  return /** @type {Blob} */ (body)
}

/** An image that cannot be shown gives way to what follows it. @param {Event} event */
export function giveWay({ type, target }) {
  if (target instanceof HTMLElement) target.hidden = type === 'error'
}

/**
 * Where the content of a file is served, without a token. `sha256` pins it, so that it can be cached.
 * @param {string} path
 * @param {{ sha256?: string, download?: boolean }} [options]
 */
export function contentUrl(path, { sha256, download = false } = {}) {
  const query = [download && 'download', sha256 && `v=${sha256.slice(0, 16)}`].filter(Boolean)
  return `${urlOf('files')}/static/${encodePath(path)}${query.length > 0 ? `?${query.join('&')}` : ''}`
}
