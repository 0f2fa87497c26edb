import { rm } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { basename, join } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'

/** What a package's bundles start from, which name them; without an entry here `main`. */
const entries: Record<string, string[]> = {
  client: ['index', 'commands/domains', 'commands/files'],
  'domain-service': ['main', 'maintenance/data-command'],
  'static-service': ['main', 'maintenance/data-command', 'maintenance/files-command'],
}

/**
 * Bundles the programs of a package and their dependencies into `dist/`. The result is not minified: stack traces in
 * logs name functions.
 */
export async function bundle(directory: string) {
  await rm(join(directory, 'dist'), { recursive: true, force: true })
  const build = await rolldown({
    cwd: directory,
    input: (entries[basename(directory)] ?? ['main']).map((entry) => `src/${entry}.ts`),
    platform: 'node',
    external: leftOut,
    // A program that uses nothing of such a package does not load it; of ours a worker thread loads what it uses.
    // So our modules have no effect when they are imported, except for those that programs and threads begin with.
    treeshake: {
      moduleSideEffects: [
        { test: /./, external: true, sideEffects: false },
        { test: /\/packages\/[^/]+\/src\//, sideEffects: false },
      ],
    },
    plugins: [workerThreads, builtins],
  })
  await build.write({ dir: 'dist', format: 'esm', chunkFileNames: '[name].js', comments: false })
  await build.close()
}

// Native, or large and rarely used. Node finds them from dist/, since the bundled packages themselves depend on them.
const leftOut = ['better-sqlite3', '@aws-sdk/client-s3']

/** Bundles the script that a `new URL('./worker.ts', import.meta.url)` names, too, and refuses imports for an effect. */
const workerThreads: Plugin = {
  name: 'worker-threads',
  async transform(code, importer) {
    const isOurs = !importer.includes('/node_modules/')
    if (isOurs && /^import '/m.test(code))
      throw new Error(`${importer} imports a module for its effect, which the bundle would lack`)
    let changed = code
    for (const [expression, script = ''] of code.matchAll(scriptUrl)) {
      const file = await this.resolve(script, importer)
      if (!file) throw new Error(`${importer} names ${script}, which does not exist`)
      const reference = this.emitFile({ type: 'chunk', id: file.id })
      changed = changed.replace(expression, `new URL(import.meta.ROLLUP_FILE_URL_${reference})`)
    }
    return changed === code ? null : changed
  },
}

const scriptUrl = /new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g

/**
 * Takes Node's own modules as objects. To be imported or required they are first read whole, with what they load at its first
 * use: a tenth of the time of a start.
 */
const builtins: Plugin = {
  name: 'builtins',
  renderChunk: (code) =>
    code
      .replace(/^import (.+) from ("[^"]+");$/gm, (statement, names: string, id: string) =>
        isBuiltin(JSON.parse(id)) ? `const ${bindings(names)} = ${builtin}(${id});` : statement,
      )
      .replace(/\b__require\(("[^"]+")\)/g, (call, id: string) => (isBuiltin(JSON.parse(id)) ? takeBuiltin(id) : call)),
}

// The default export of such a module is the module.
const bindings = (names: string) => names.replace(/^\* as /, '').replaceAll(' as ', ': ')

// Some packages have a variable `process`.
const builtin = 'globalThis.process.getBuiltinModule'

// Fastify names it, and uses it for HTTP/2 alone, which no program serves.
const takeBuiltin = (id: string) =>
  id === '"node:http2"' ? `new Proxy({}, { get: (_, name) => ${builtin}(${id})[name] })` : `${builtin}(${id})`
