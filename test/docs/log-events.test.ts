import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseAst } from 'vitest/node'
import { root } from '../support/everything.ts'

const read = (file: string) => readFileSync(join(root, file), 'utf8')

test('docs/operations.md lists every warning and error of the services', () => {
  const guide = read('docs/operations.md')
  const events = globSync('packages/{auth,http,persistence,domain-service,static-service}/src/**/*.ts', { cwd: root })
    .filter((file) => /\.(?:warn|error|fatal)\(/.test(read(file)))
    .flatMap(eventsOf)

  expect(events.length).toBeGreaterThan(25)
  expect(events.filter((event) => !guide.includes(`\`${eventNameOf(event)}`))).toEqual([])
})

// An event may go on after a colon with what to do.
const eventNameOf = (event: string) => event.split(':')[0] ?? event

/** The messages of `log.warn`, `log.error` and `log.fatal` calls: their last argument, where it is a string. */
function eventsOf(file: string): string[] {
  const calls = [...nodesIn(parseAst(stripTypeScriptTypes(read(file))))].filter(isLogCall)
  return calls.flatMap(({ arguments: args }) => {
    const last = args.at(-1)
    return last?.type === 'Literal' && typeof last.value === 'string' ? [last.value] : []
  })
}

interface LogCall {
  arguments: { type: string; value?: unknown }[]
}

const isLogCall = (node: object): node is LogCall =>
  'type' in node &&
  node.type === 'CallExpression' &&
  'callee' in node &&
  levels.has(String((node.callee as { property?: { name?: string } }).property?.name))

const levels = new Set(['warn', 'error', 'fatal'])

function* nodesIn(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return
  yield value
  for (const child of Object.values(value)) yield* nodesIn(child)
}
