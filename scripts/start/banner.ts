import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Admin, Program } from './programs.ts'

/** The first screen: addresses, how to log in, and commands to paste. */
export function describeStart(programs: Program[], admin: Admin | undefined): string {
  const first = programs.find(({ name }) => name === 'console')
  const listed = first ? [first, ...programs.filter((each) => each !== first)] : programs
  const addresses = listed.map(({ name, port }) => `  ${name.padEnd(18)} ${addressOf(port)}`)
  const apis = programs.filter(({ name }) => name in exampleFiles)
  const docs = apis.map(({ port }) => `${addressOf(port)}/docs`).join(' and ')
  return `
${addresses.join('\n')}

${admin ? `  Log in as ${admin.username} with the password ${admin.password}\n` : ''}  Read and try the APIs: ${docs}
${admin ? `\nPaste these commands into another terminal:\n\n${apis.map((api) => readExamples(api, admin)).join('\n')}` : ''}
Ctrl-C stops everything.
`
}

const exampleFiles: Record<string, string> = {
  'domain-service': 'domain-service.sh',
  'static-service': 'static-service.sh',
}

const addressOf = (port: number) => `http://127.0.0.1:${port}`

function readExamples({ name, port }: Program, { password }: Admin): string {
  const file = join(import.meta.dirname, 'examples', exampleFiles[name] ?? '')
  return readFileSync(file, 'utf8')
    .replaceAll('PASSWORD', password)
    .replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`)
}
