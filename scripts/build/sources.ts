import { createHash } from 'node:crypto'
import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

// Contents and not times: an unpacked archive may have times older than the last build.
const inputs = ['packages/*/src/**/*.ts', 'packages/*/package.json', 'scripts/build/*.ts', 'pnpm-lock.yaml']

/** A digest of all that the bundles are made of. */
export async function digestSources(root: string): Promise<string> {
  const files: string[] = []
  for await (const file of glob(inputs, { cwd: root })) files.push(file)
  const hash = createHash('sha256')
  for (const file of files.sort()) {
    hash.update(`${file}\n`).update(await readFile(join(root, file)))
  }
  return hash.digest('hex')
}

/** Whether the package's bundle was made from the sources with this digest. */
export const isBuilt = (directory: string, digest: string) =>
  readFile(recordIn(directory), 'utf8').then(
    (recorded) => recorded === digest,
    () => false,
  )

/** Called when a bundle is complete, so that an interrupted build is repeated. */
export const recordBuild = (directory: string, digest: string) => writeFile(recordIn(directory), digest)

const recordIn = (directory: string) => join(directory, 'dist/sources.sha256')
