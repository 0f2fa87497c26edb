import { sql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { orders } from '../../../src/catalog/listing/list-query.ts'
import { newDatabase, openReplica } from '../../support/catalogs.ts'

// U+FB01 sorts before U+1F642 by UTF-8 bytes, and after it by UTF-16.
const paths = ['a', 'a/b', 'a-', 'B', 'é', 'жук', '\ufb01', '🙂', '🙂a']

// Two of each size and time are equal but for their path.
const files = paths.flatMap((path, at) =>
  [path, `${path}z`].map((each) => ({
    path: each,
    size: at % 3,
    updatedAt: `2026-01-0${(at % 4) + 1}T00:00:00.000Z`,
  })),
)

test('files precede each other as PostgreSQL sorts them, in every order', async () => {
  const { postgres } = await openReplica((await newDatabase()).url)

  for (const order of Object.values(orders)) {
    const sorted = await postgres.all<{ path: string }>(
      sql`select path from (
         select path collate "C", regexp_replace(path, '^.*/', '') collate "C" as name, size, "updatedAt" collate "C" updated_at
         from json_to_recordset(${JSON.stringify(files)}) as file (path text, size bigint, "updatedAt" text)) files
       order by ${order.by}`,
    )
    const expected = files.toSorted((one, other) => (order.precedes(one, other) ? -1 : 1))
    expect([order.by, sorted.map(({ path }) => path)]).toEqual([order.by, expected.map(({ path }) => path)])
  }
})
