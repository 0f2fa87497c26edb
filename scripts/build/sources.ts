import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Contents and not times: an unpacked archive may have times older than the last build.
const inputs = ['packages/*/src/**/*.ts', 'packages/*/package.json', 'scripts/build/*.ts', 'pnpm-lock.yaml']

/** A digest of all that the bundles are made of. */
export function digestSources(root: string): string {
  const hash = createHash('sha256')
  for (const file of globSync(inputs, { cwd: root }).sort())
    hash.update(`${file}\n`).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

/** Whether the package's bundle was made from the sources with this digest. */
export const isBuilt = (directory: string, digest: string) =>
  existsSync(recordIn(directory)) && readFileSync(recordIn(directory), 'utf8') === digest

/** The script of a service's command: its bundle, or changed sources, since a running service may yet load the bundles. */
export function commandOf(root: string, service: string, name: string): string {
  const directory = join(root, 'packages', service)
  return join(directory, isBuilt(directory, digestSources(root)) ? `dist/${name}.js` : `src/maintenance/${name}.ts`)
}

/** Called when a bundle is complete, so that an interrupted build is repeated. */
export const recordBuild = (directory: string, digest: string) => writeFileSync(recordIn(directory), digest)

const recordIn = (directory: string) => join(directory, 'dist/sources.sha256')
