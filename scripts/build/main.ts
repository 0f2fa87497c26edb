import { digestSources, isBuilt, recordBuild } from './sources.ts'

// Bundles the programs, or those that the arguments name, into packages/<name>/dist, unless their sources are unchanged.

const programs = ['registrar-sandbox', 'domain-service', 'static-service', 'console']
const names = process.argv.slice(2)

const digest = await digestSources()
for (const name of names.length > 0 ? names : programs) {
  if (await isBuilt(name, digest)) continue
  const { bundle } = await import('./bundle.ts')
  await bundle(name)
  await recordBuild(name, digest)
}
