import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Everything, root, startEverything } from '../support/everything.ts'
import { GeneratedClients } from '../support/generated-clients.ts'
import type { Outcome, Target } from './generated-client/outcome.ts'

const scenarios = join(root, 'test/e2e/generated-client')

let everything: Everything
let clients: GeneratedClients
beforeAll(async () => {
  everything = await startEverything()
  clients = new GeneratedClients()
  await clients.generate('domain-service', everything.domains)
  await clients.generate('static-service', everything.files)
})
afterAll(async () => {
  clients[Symbol.dispose]()
  await everything[Symbol.asyncDispose]()
})

test('clients of three generators compile with strict options, and so do programs that use them', async () => {
  const config = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: {
      lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'],
      types: [],
      rootDirs: [scenarios, clients.directory],
      // The runtime code that the generators add is not written for this option.
      exactOptionalPropertyTypes: false,
    },
    include: [scenarios, join(clients.directory, 'generated')],
  }
  const file = join(clients.directory, 'tsconfig.json')
  writeFileSync(file, JSON.stringify(config))

  const { stdout } = await promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['--project', file]).catch(
    (error) => error,
  )

  expect(stdout).toBe('')
})

test.each([
  ['openapi-typescript', ''],
  ['hey-api', '/index'],
  ['oazapfts', ''],
])('a client of %s reads and adds records, and uploads and lists files', async (generator, main) => {
  const credentials = { username: 'admin', password: everything.password }
  const target: Target = {
    domains: { url: everything.domains, credentials },
    files: { url: everything.files, credentials },
  }
  // Untyped import: the file needs types that exist in the temporary directory only.
  const { run }: Scenario = await import(`./generated-client/${generator}.ts`)

  const outcome = await run(
    target,
    await clients.import(`${generator}/domain-service${main}.ts`),
    await clients.import(`${generator}/static-service${main}.ts`),
  )

  expect(outcome).toMatchObject({
    record: { name: generator, type: 'A' },
    uploaded: `${generator}/hello.txt`,
    listed: [`${generator}/hello.txt`],
  })
})

interface Scenario {
  run: (target: Target, domains: object, files: object) => Promise<Outcome>
}
