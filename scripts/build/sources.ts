import { createHash } from 'node:crypto'
import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

// Contents and not times: unpacking an archive may set times older than those of the last build.
const inputs = [
  'packages/*/src/**/*.ts',
  'packages/*/package.json',
  'scripts/build/*.ts',
  'pnpm-lock.yaml',
]

/** A digest of everything that a bundle is made of. */
export async function digestSources(): Promise<string> {
  const hash = createHash('sha256')
  const files: string[] = []
  for await (const file of glob(inputs, { cwd: root })) files.push(file)
  for (const file of files.sort()) {
    hash.update(`${file}\n`).update(await readFile(join(root, file)))
  }
  return hash.digest('hex')
}

const recordOf = (name: string) => join(root, 'packages', name, 'dist/sources.sha256')

/** Whether the program was built from these sources. */
export const isBuilt = (name: string, digest: string) =>
  readFile(recordOf(name), 'utf8').then(
    (recorded) => recorded === digest,
    () => false,
  )

/** Called when the build is complete: an interrupted one is repeated. */
export const recordBuild = (name: string, digest: string) => writeFile(recordOf(name), digest)
