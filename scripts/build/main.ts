import { join } from 'node:path'
import { digestSources, isBuilt, recordBuild } from './sources.ts'

// Bundles the programs, or those that the arguments name, into packages/<name>/dist, unless their sources are unchanged.

const programs = ['registrar-sandbox', 'domain-service', 'static-service', 'console', 'client']
const names = process.argv.slice(2)

const root = join(import.meta.dirname, '../..')
const digest = digestSources(root)
for (const name of names.length > 0 ? names : programs) {
  const directory = join(root, 'packages', name)
  if (isBuilt(directory, digest)) continue
  const { bundle } = await import('./bundle.ts')
  await bundle(directory)
  recordBuild(directory, digest)
}
