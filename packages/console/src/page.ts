import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, posix } from 'node:path'
import type { Config } from './config.ts'

export const webFolder = join(import.meta.dirname, '../web')
/** Folder of lit-html. `resolve` would find its file for Node, not the main file for browsers. */
export const litFolder = dirname(findPackageJSON('lit-html', import.meta.url) ?? '')
const litPrefix = 'vendor/'

/** The page as served. Asset URLs contain `version`, so that browsers can cache them forever. */
export interface Page {
  version: string
  html: string
  /** The style sheets of index.html, concatenated. */
  styles: string
  /** For each lazily loaded module: the files it needs beyond the first load, itself included. */
  modules: Record<string, string[]>
  /** Modules of lit-html that the page uses; no others are served. */
  litModules: string[]
}

/**
 * Reads index.html, rewrites asset URLs to `assets/<version>/`, and merges the style sheets. Preloads the modules of the
 * first view: otherwise the browser would discover them one import level at a time.
 */
export function readPage(): Page {
  const index = readFileSync(join(webFolder, 'index.html'), 'utf8')
  const styles = [...index.matchAll(/"assets\/(style\/[^"]+)"/g)]
    .map(([, name = '']) => readFileSync(join(webFolder, name), 'utf8'))
    .join('\n')
  const first = findModules('shell/app-shell.js', findModules('app.js'))
  const names = readModule('shell/app-shell.js').matchAll(/'([\w-]+(?:\/[\w-]+)+)'/g)
  const modules = Object.fromEntries(
    [...names].map(([, view = '']) => [view, [...findModules(`${view}.js`)].filter((module) => !first.has(module))]),
  )
  const all = [...first, ...Object.values(modules).flat()]
  const litModules = all.filter((module) => module.startsWith(litPrefix))
  const version = hashPage([index, styles, ...litModules.map(readModule)])
  const preloads = [...first].map((module) => `<link rel="modulepreload" href="assets/${version}/${module}">`)
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
  // The specifier ends an import: on one line, or on the last of several (`} from './x.js'`). lit-html is one long line.
  for (const line of readModule(module).split(/[\n;]/)) {
    const target = /^(?:import|export|\}).*['"](\.[^'"]+)['"]$/.exec(line.trimEnd())?.[1]
    if (target) findModules(posix.join(posix.dirname(module), target), found)
  }
  return found
}

type ServiceUrls = Pick<Config, 'domainServiceUrl' | 'staticServiceUrl'>

/**
 * The Content-Security-Policy of the page: scripts and styles of its own origin only, API calls to the two services,
 * media and frames from the static service. Trusted Types admit HTML strings of lit-html only.
 */
export function contentSecurityPolicy({ domainServiceUrl, staticServiceUrl }: ServiceUrls): string {
  const domains = originOf(domainServiceUrl)
  const files = originOf(staticServiceUrl)
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: blob:${files}`,
    `media-src blob:${files}`,
    `frame-src${files || " 'none'"}`,
    `connect-src 'self'${[...new Set([domains, files])].join('')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types lit-html',
  ].join('; ')
}

// The origin alone: a path without a trailing slash would match only itself, not paths below it.
const originOf = (url: string | undefined) => (url ? ` ${new URL(url).origin}` : '')
