import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, posix } from 'node:path'

export const webFolder = join(import.meta.dirname, '../web')
/** The package's folder: its main file is the one for browsers, which `resolve` would not find from Node. */
export const litFolder = dirname(findPackageJSON('lit-html', import.meta.url) ?? '')
const litModule = 'vendor/lit-html.js'

/** The page as it is served. `version` names the assets: a new build has new URLs, so that each is cached for good. */
export interface Page {
  version: string
  html: string
}

/**
 * Reads index.html, points its asset URLs at `assets/<version>/`, and preloads the modules that the first view needs,
 * which the browser would otherwise discover one level of imports after the other.
 */
export function readPage(): Page {
  const files = readdirSync(webFolder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:js|css|svg|html)$/.test(name))
    .sort()
  const hash = createHash('sha256')
  for (const name of files) hash.update(`${name}\n`).update(readFileSync(join(webFolder, name)))
  hash.update(readFileSync(join(litFolder, 'lit-html.js')))
  const version = hash.digest('hex').slice(0, 16)

  const modules = findModules('shell/app-shell.js', findModules('app.js'))
  const preloads = [...modules].map(
    (module) => `<link rel="modulepreload" href="assets/${version}/${module}">`,
  )
  const html = readFileSync(join(webFolder, 'index.html'), 'utf8')
    .replaceAll('"assets/', `"assets/${version}/`)
    .replace('<!-- preloads -->', preloads.join('\n'))
  return { version, html }
}

// Every module that `module` imports statically, itself included.
function findModules(module: string, found = new Set<string>()): Set<string> {
  if (found.has(module)) return found
  found.add(module)
  if (module === litModule) return found
  const source = readFileSync(join(webFolder, module), 'utf8')
  // A static import ends with its specifier, on a line of its own or of several: `} from './x.js'`.
  for (const line of source.split('\n')) {
    const target = /^(?:import|export|\}).*['"](\.[^'"]+)['"]$/.exec(line.trimEnd())?.[1]
    if (target) findModules(posix.join(posix.dirname(module), target), found)
  }
  return found
}
