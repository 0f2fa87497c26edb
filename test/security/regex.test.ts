import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { check } from 'recheck'
import { describe, expect, test } from 'vitest'
import { parseAst } from 'vitest/node'

// Every regular expression must run in linear time: one request must not block the event loop.

/** Superlinear ones, and what bounds their input. */
const bounded = new Map([
  [String.raw`/\/+$/`, 'a setting, read once'],
  [
    String.raw`/^(?:(\*\.)|(?=.+\.))((?:[\p{L}\p{M}\p{N}_-]+\.)*[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*)$/u`,
    'asked of 255 characters at most',
  ],
])

/** Only what is read counts: the detector takes a match that a busy machine delays for a slow one. */
const byCount = {
  randomSeed: 1,
  timeout: null,
  seedingTimeout: null,
  incubationTimeout: null,
  attackTimeout: null,
}

const root = join(import.meta.dirname, '../..')
const files = globSync('packages/*/src/**/*.ts', { cwd: root }).sort()

function* nodesIn(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return
  yield value
  for (const child of Object.values(value)) yield* nodesIn(child)
}

const read = (file: string) => [...nodesIn(parseAst(stripTypeScriptTypes(readFileSync(join(root, file), 'utf8'))))]

const literals = files.flatMap((file) =>
  read(file).flatMap((node) =>
    'regex' in node ? [[file, node.regex as { pattern: string; flags: string }] as const] : [],
  ),
)

describe('the regular expressions', () => {
  test('are found', () => {
    expect(files.length).toBeGreaterThan(80)
    expect(literals.length).toBeGreaterThan(100)
  })

  test('run in linear time', async () => {
    const slow: string[] = []
    for (const [file, { pattern, flags }] of literals) {
      const whole = `/${pattern}/${flags}`
      if (bounded.has(whole)) continue
      // The detector does not support the `v` flag: only a single character class may use it.
      const isSafe = flags.includes('v')
        ? /^\[.*\]$/.test(pattern)
        : (await check(pattern, flags, byCount)).status === 'safe'
      if (!isSafe) slow.push(`${file}: ${whole}`)
    }

    expect(slow).toEqual([])
  })

  test('that are excused exist', () => {
    const all = literals.map(([, { pattern, flags }]) => `/${pattern}/${flags}`)

    expect([...bounded.keys()].filter((whole) => !all.includes(whole))).toEqual([])
  })

  test('are literals, not built from strings', () => {
    const made = files.filter((file) => /\bnew RegExp\(|[^.\w]RegExp\(/.test(readFileSync(join(root, file), 'utf8')))

    // The three HTTP-date forms: every repetition is bounded.
    expect(made).toEqual(['packages/static-service/src/rfc9110/conditional-requests.ts'])
  })
})
