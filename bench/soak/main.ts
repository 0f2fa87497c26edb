import { idleConnections } from './idle.ts'
import { mixedLoad } from './mixed.ts'
import { overload } from './overload.ts'
import { type Services, startServices } from './services.ts'

// Each part on services that the one before has used; those that are named as arguments, else all. Ends with status 1
// if something failed, grew or stayed slow.
const parts: Record<string, (services: Services) => Promise<string[]>> = {
  mixed: (services) => mixedLoad(services, Number(process.env.SOAK_MINUTES ?? 20)),
  idle: async ({ files, names }) => [...(await idleConnections(files)), ...(await idleConnections(names))],
  overload: async ({ files, names }) => [...(await overload(files, 30)), ...(await overload(names, 30))],
}
const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !(name in parts))
if (unknown.length > 0) throw new Error(`There is no part ${unknown}: ${Object.keys(parts)}`)

const failures: string[] = []
await using services = await startServices()
for (const [name, part] of Object.entries(parts)) {
  if (asked.length === 0 || asked.includes(name)) failures.push(...(await part(services)))
}
for (const failure of failures.slice(0, 20)) console.log(`FAILED: ${failure}`)
console.log(failures.length === 0 ? 'All held.' : `${failures.length} failures`)
process.exitCode = failures.length === 0 ? 0 : 1
