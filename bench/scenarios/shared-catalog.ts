import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Finding } from '../harness/finding.ts'
import { startPostgres } from '../harness/stores.ts'
import { measurePostgres } from './catalog-worker.ts'

const rows = 1_000_000

/**
 * Catalog queries at a million files in PostgreSQL, in this process, without HTTP. Filling the database takes minutes, so
 * it is kept for the next run.
 */
export async function measureSharedCatalog(): Promise<Finding[]> {
  const directory = join(tmpdir(), `bench-catalog-postgres-${rows}`)
  mkdirSync(directory, { recursive: true })
  await using postgres = await startPostgres(directory)
  const { again, changed } = await measurePostgres(rows, postgres.url)
  return Object.entries(again).flatMap(([query, { p99 }]): Finding[] => {
    const work = `catalog in PostgreSQL, 1,000,000 files: ${query}`
    const after = changed[query]?.p99 ?? Number.NaN
    // With this many nodes the response itself takes the time.
    const goal = query === 'tree, 10,000 nodes' ? {} : { goal: atMost }
    return [
      { work, unit: 'ms, p99', ours: [p99], ...goal },
      { work, unit: 'ms, p99 after a change', ours: [after], ...goal },
    ]
  })
}

const atMost = { of: 'figure', atMost: 50 } as const
