/**
 * The address of a view, kept in the fragment: `#/domains/example.com?tab=history`.
 * @typedef {{ path: string, segments: string[], query: URLSearchParams }} Route
 */

/** Dispatches `change` after each navigation. */
export const routeChanges = new EventTarget()

/** @returns {Route} */
export function currentRoute() {
  const [path = '', query = ''] = splitOnce(location.hash.slice(1) || '/', '?')
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
  if (href === location.hash) return
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  routeChanges.dispatchEvent(new Event('change'))
}

addEventListener('hashchange', () => routeChanges.dispatchEvent(new Event('change')))
addEventListener('popstate', () => routeChanges.dispatchEvent(new Event('change')))

/** @param {string} text @param {string} separator */
function splitOnce(text, separator) {
  const at = text.indexOf(separator)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** Percent-decodes; what cannot be decoded stays as it is. @param {string} text */
export function decode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
