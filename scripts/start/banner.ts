import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Admin, type Program, unusedUsers } from './programs.ts'

/**
 * The first screen: addresses, how to log in, and commands to paste. `admin` is undefined where the first admin has
 * another password by now.
 */
export function describeStart(programs: Program[], admin: Admin | undefined): string {
  const first = programs.find(({ name }) => name === 'console')
  const listed = first ? [first, ...programs.filter((each) => each !== first)] : programs
  const addresses = listed.map(({ name, port }) => `  ${name.padEnd(18)} ${addressOf(port)}`)
  const apis = programs.filter(({ name }) => services.includes(name))
  const docs = apis.map(({ port }) => `${addressOf(port)}/docs`).join(' and ')
  return `
${addresses.join('\n')}

  ${[describeLogin(admin), ...unusedUsers(programs)].join('\n  ')}
  Read and try the APIs: ${docs}
${admin ? `\nPaste these commands into another terminal:\n\n${apis.map((api) => readExamples(api, admin)).join('\n')}` : ''}
Ctrl-C stops everything.
`
}

function describeLogin(admin: Admin | undefined): string {
  if (!admin) return 'Log in as one of the users: `npm run users -- list`'
  const password = admin.isGiven ? 'ADMIN_PASSWORD' : `the password ${admin.password}`
  return `Log in as ${admin.username} with ${password}`
}

const services = ['domain-service', 'static-service']

const addressOf = (port: number) => `http://127.0.0.1:${port}`

function readExamples({ name, port }: Program, { username, password, isGiven }: Admin): string {
  const file = join(import.meta.dirname, 'examples', `${name}.sh`)
  return readFileSync(file, 'utf8')
    .replaceAll('"admin"', `"${username}"`)
    .replaceAll('PASSWORD', isGiven ? 'ADMIN_PASSWORD' : password)
    .replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`)
}
