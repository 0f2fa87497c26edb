import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { checkSync } from 'recheck'
import { describe, expect, test } from 'vitest'
import { parseAst } from 'vitest/node'

// Every regular expression of the sources must take time that grows as its input does: one request must not stop all.

/** Those that grow faster, and what bounds their input. */
const bounded = new Map([
  [String.raw`/\/+$/`, 'a setting, read once'],
  [String.raw`/\s*\n\s*/g`, "our own words about the operator's file"],
  [
    String.raw`/^(\*\.)?((?:[\p{L}\p{M}\p{N}_-]+\.)+[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*)$/u`,
    'asked of 255 characters at most',
  ],
])

const root = join(import.meta.dirname, '../..')
const files = globSync('packages/*/src/**/*.ts', { cwd: root }).sort()

function* nodesIn(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return
  yield value
  for (const child of Object.values(value)) yield* nodesIn(child)
}

const read = (file: string) => [
  ...nodesIn(parseAst(stripTypeScriptTypes(readFileSync(join(root, file), 'utf8')))),
]

const literals = files.flatMap((file) =>
  read(file).flatMap((node) =>
    'regex' in node ? [[file, node.regex as { pattern: string; flags: string }] as const] : [],
  ),
)

describe('the regular expressions', () => {
  test('are found at all', () => {
    expect(files.length).toBeGreaterThan(80)
    expect(literals.length).toBeGreaterThan(100)
  })

  test.each(
    literals.map(([file, { pattern, flags }]) => [file, `/${pattern}/${flags}`, pattern, flags]),
  )('%s: %s grows with its input', (_file, whole, pattern, flags) => {
    if (bounded.has(whole)) return
    // The detector does not know `v`; such a one may be a set of characters, and no more.
    if (flags.includes('v')) return expect(pattern).toMatch(/^\[.*\]$/)

    const { status } = checkSync(pattern, flags, { timeout: 20_000, randomSeed: 1 })

    expect(status).toBe('safe')
  })

  test('that are excused are there, and not safe', () => {
    const all = literals.map(([, { pattern, flags }]) => `/${pattern}/${flags}`)

    expect([...bounded.keys()].filter((whole) => !all.includes(whole))).toEqual([])
  })

  test('are written as such, not put together from texts', () => {
    const made = files.filter((file) =>
      /\bnew RegExp\(|[^.\w]RegExp\(/.test(readFileSync(join(root, file), 'utf8')),
    )

    // Names of parameters, and the three forms of an HTTP date: no repetition in either is without bound.
    expect(made).toEqual([
      'packages/registrar-sandbox/src/commands/parameters.ts',
      'packages/static-service/src/rfc9110/conditional-requests.ts',
    ])
  })
})
