import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../support/everything.ts'
import { tableRows } from '../support/tables.ts'

const read = (file: string) => readFileSync(join(root, file), 'utf8')

test('docs/errors.md lists every error code with its status, and no other', () => {
  const sources = globSync('packages/{auth,http,events,domain-service,static-service}/src/**/*.ts', {
    cwd: root,
  })
  const thrown = sources.flatMap((file) =>
    [...read(file).matchAll(/\b([45]\d\d)[,:]\s*'([a-z]+(?:_[a-z]+)+|unauthorized|forbidden|unavailable)'/g)].map(
      ([, status, code]) => `${code} ${status}`,
    ),
  )
  const documented = tableRows(read('docs/errors.md')).flatMap(([codes = '', statuses = '']) =>
    codes
      .replaceAll('`', '')
      .split(', ')
      .map((code) => ({ code, statuses: statuses.split(', ') })),
  )

  expect(documented.map(({ code }) => code).sort()).toEqual(
    [...new Set(thrown.map((each) => each.split(' ')[0]))].sort(),
  )
  const wrong = documented.filter(
    ({ code, statuses }) => !statuses.some((status) => thrown.includes(`${code} ${status}`)),
  )
  expect(wrong).toEqual([])
})
