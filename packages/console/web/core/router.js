/**
 * The address of a view, kept in the fragment: `#/domains/example.com?tab=history`.
 * @typedef {{ path: string, segments: string[], query: URLSearchParams }} Route
 */

/** Dispatches `change` after each navigation. */
export const routeChanges = new EventTarget()

let shownHash = location.hash
let shownIndex = indexNow()

export function currentRoute() {
  const [path = '', query = ''] = (shownHash.slice(1) || '/').split(/\?(.*)/s)
  const segments = path.split('/').filter(Boolean).map(decode)
  return { path, segments, query: new URLSearchParams(query) }
}

/**
 * The fragment of a view. Empty query values are left out.
 * @param {string[]} segments
 * @param {Record<string, string | undefined>} [query]
 */
export function hrefTo(segments, query = {}) {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []))
  const search = given.length > 0 ? `?${new URLSearchParams(given)}` : ''
  return `#/${segments.map(encodeURIComponent).join('/')}${search}`
}

/**
 * Opens a view. `replace`: without a new entry in the browser's history, as while somebody types a search.
 * @param {string} href
 * @param {{ replace?: boolean }} [options]
 */
export function navigate(href, { replace = false } = {}) {
  if (href === shownHash) return
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  follow()
}

/** What lies above the view: Back closes the last one instead of leaving the view. @type {Set<() => void>} */
export const overlays = new Set()

addEventListener('hashchange', followHistory)

function followHistory() {
  if (location.hash === shownHash) return // Back at the view below a closed dialog.
  const leave = [...overlays].at(-1)
  if (!leave || indexNow() >= shownIndex) return follow()
  leave()
  return history.go(shownIndex - indexNow())
}

function follow() {
  shownHash = location.hash
  shownIndex = indexNow()
  routeChanges.dispatchEvent(new Event('change'))
}

/** Of this entry among those of the tab; always 0 where the browser does not tell: then Back leaves the view. */
function indexNow() {
  return 'navigation' in globalThis ? (navigation.currentEntry?.index ?? 0) : 0
}

/** Percent-decodes; what cannot be decoded stays as it is. @param {string} text */
export function decode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
