import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, posix } from 'node:path'

export const webFolder = join(import.meta.dirname, '../web')
/** The package's folder: its main file is the one for browsers, which `resolve` would not find from Node. */
export const litFolder = dirname(findPackageJSON('lit-html', import.meta.url) ?? '')
const litPrefix = 'vendor/'

/** The page as it is served. `version` names the assets: a new build has new URLs, so that each is cached for good. */
export interface Page {
  version: string
  html: string
  /** Of index.html, one after the other. */
  styles: string
  /** What each module that the shell loads when it is needed imports beyond the first load, itself included. */
  modules: Record<string, string[]>
  /** Of lit-html, which are the only ones to be served of it. */
  litModules: string[]
}

/**
 * Reads index.html, points its asset URLs at `assets/<version>/`, makes one style sheet of its links, and preloads the
 * modules that the first view needs, which the browser would otherwise discover one level of imports after the other.
 */
export function readPage(): Page {
  const index = readFileSync(join(webFolder, 'index.html'), 'utf8')
  const styles = [...index.matchAll(/"assets\/(style\/[^"]+)"/g)]
    .map(([, name = '']) => readFileSync(join(webFolder, name), 'utf8'))
    .join('\n')
  const first = findModules('shell/app-shell.js', findModules('app.js'))
  const names = readModule('shell/app-shell.js').matchAll(/'([\w-]+(?:\/[\w-]+)+)'/g)
  const modules = Object.fromEntries(
    [...names].map(([, view = '']) => [
      view,
      [...findModules(`${view}.js`)].filter((module) => !first.has(module)),
    ]),
  )
  const all = [...first, ...Object.values(modules).flat()]
  const litModules = all.filter((module) => module.startsWith(litPrefix))
  const version = hashPage([index, styles, ...litModules.map(readModule)])
  const preloads = [...first].map(
    (module) => `<link rel="modulepreload" href="assets/${version}/${module}">`,
  )
  const html = index
    .replaceAll(/<link rel="stylesheet"[^<>]*>\n/g, '')
    .replace('<!-- preloads -->', '<link rel="stylesheet" href="assets/style.css">')
    .replaceAll('"assets/', `"assets/${version}/`)
    .replace('</head>', `${preloads.join('\n')}\n</head>`)
  return { version, html, styles, modules, litModules }
}

function hashPage(texts: string[]): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(webFolder, { recursive: true, encoding: 'utf8' }).sort())
    if (/\.(?:js|json|svg)$/.test(name)) hash.update(`${name}\n`).update(readModule(name))
  for (const text of texts) hash.update(text)
  return hash.digest('hex').slice(0, 16)
}

const readModule = (module: string): string =>
  module.startsWith(litPrefix)
    ? readFileSync(join(litFolder, module.slice(litPrefix.length)), 'utf8')
    : readFileSync(join(webFolder, module), 'utf8')

// Every module that `module` imports statically, itself included.
function findModules(module: string, found = new Set<string>()): Set<string> {
  if (found.has(module)) return found
  found.add(module)
  // An import ends with its specifier, on a line of its own or of several: `} from './x.js'`. lit-html has all on one line.
  for (const line of readModule(module).split(/[\n;]/)) {
    const target = /^(?:import|export|\}).*['"](\.[^'"]+)['"]$/.exec(line.trimEnd())?.[1]
    if (target) findModules(posix.join(posix.dirname(module), target), found)
  }
  return found
}
