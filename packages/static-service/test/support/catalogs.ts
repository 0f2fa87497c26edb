import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Postgres, render, type SqlTransaction, type Statement } from '@domains-and-files/persistence'
import { onTestFinished, vi } from 'vitest'
import type { ContentTransaction } from '../../src/blobs/s3/content-commit.ts'
import type { Catalog } from '../../src/catalog/catalog.ts'
import type { HistoryRules, SliceLimits } from '../../src/catalog/changes/group.ts'
import { schemaName } from '../../src/catalog/migrations.ts'
import { openPostgresCatalog } from '../../src/catalog/postgres/postgres-catalog.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/sqlite-catalog.ts'
import type { NewFile } from '../../src/catalog/tables.ts'
import { sharedMigrations } from '../../src/shared-storage.ts'
import { serviceDatabase } from './service-database.ts'

/** The implementations of `Catalog`, by the name of their database. */
export const databases = ['SQLite', 'PostgreSQL'] as const

export type DatabaseName = (typeof databases)[number]

interface Options {
  quotaBytes?: number
  limits?: SliceLimits
  history?: HistoryRules
}

/** A new, empty catalog, which is closed and removed with the test. */
export const openCatalog = (database: DatabaseName, options: Options = {}): Promise<Catalog> =>
  database === 'SQLite' ? openSqlite(options) : openPostgres(options)

/** Stores a file at each path. */
export async function putPaths(catalog: Catalog, paths: string[]): Promise<void> {
  for (let from = 0; from < paths.length; from += 2000) {
    await catalog.writes.put({ files: paths.slice(from, from + 2000).map(toFile) })
  }
}

/** A file with a content of its own. */
export const toFile = (path: string): NewFile => ({
  path,
  digest: Buffer.from(path).toString('hex').padStart(64, '0').slice(-64),
  size: path.length,
  contentType: path.endsWith('.png') ? 'image/png' : 'text/plain',
  category: path.endsWith('.png') ? 'image' : 'document',
  uploadedBy: 'tester',
})

/** A new folder, which is removed with the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'static-catalog-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function openSqlite(options: Options) {
  const catalog = await openSqliteCatalog(makeFolder(), options)
  onTestFinished(() => catalog.close())
  return catalog
}

async function openPostgres(options: Options) {
  const { url } = await newDatabase()
  return (await openReplica(url, options)).catalog
}

/** A new database with the tables of the service, which is removed with the test. */
export async function newDatabase() {
  const database = await serviceDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database
}

/** A catalog on a database that other processes may use too; it is closed with the test. */
export async function openReplica(
  url: string,
  { contents = allPresent, ...options }: Options & { contents?: ContentTransaction } = {},
) {
  const postgres = await Postgres.open({
    url,
    maxConnections: 5,
    timeoutMs: 150_000,
    schema: schemaName,
    migrations: sharedMigrations,
    onError: () => undefined,
  })
  onTestFinished(() => postgres.close())
  const catalog = await openPostgresCatalog(postgres, { ...options, contents })
  catalog.background.start(catalog.isExclusive)
  onTestFinished(() => catalog.close())
  return { catalog, postgres }
}

const allPresent: ContentTransaction = {
  findMissing: async () => new Set(),
  apply: async () => undefined,
}

/** Calls `onStatement` before each statement of a snapshot. */
export function watchSnapshots(
  postgres: Postgres,
  onStatement: (statement: { text: string; values: unknown[] }) => void,
): void {
  const snapshot = postgres.snapshot.bind(postgres)
  vi.spyOn(postgres, 'snapshot').mockImplementation((work) =>
    snapshot((transaction) => {
      const watched = <Method extends 'all' | 'get' | 'run'>(method: Method) =>
        ((statement: Statement) => {
          onStatement(render(statement, postgres))
          return transaction[method](statement)
        }) as SqlTransaction[Method]
      const methods = { all: watched('all'), get: watched('get'), run: watched('run') }
      return work(Object.assign(Object.create(transaction), methods))
    }),
  )
}
