import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { onTestFinished } from 'vitest'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import type { ArchivedAccounts, ArchivedService } from '../../src/backup/archived-service.ts'
import { type BackupSource, type Row, readTables, writeRows } from '../../src/backup/archived-service.ts'
import { backUp } from '../../src/backup/backup.ts'
import { Repository } from '../../src/backup/repository.ts'
import { restore } from '../../src/backup/restore.ts'
import {
  bytes,
  identity,
  int8,
  type Migrations,
  name,
  Postgres,
  type Sql,
  SqliteSql,
  sql,
  strict,
} from '../../src/index.ts'
import { Progress } from '../../src/maintenance-command.ts'
import { type BlobRef, type OpenBlob, openBytes } from '../../src/open-blob.ts'

// A service of the test's own: items in one table, files that name blobs in another, and blobs in memory.
const schema = 'sample'
export const databaseName = 'sample.sqlite'

const migrations: Migrations = {
  sample: [
    sql`create table ${name('items')} (id ${identity}, name text, bytes ${bytes} not null) ${strict};
      create table ${name('pages')} (pass ${int8}, page ${int8}, primary key (pass, page)) ${strict};
      create table ${name('files')} (path text primary key, digest text not null, size ${int8} not null) ${strict}`,
  ],
}
const users = { users: ['create table sample.users (name text primary key)'] }

const tables = [
  { name: 'items', key: ['id'], identity: 'id' },
  { name: 'pages', key: ['pass', 'page'] },
  { name: 'files', key: ['path'] },
]

/** Of a service whose only accounts are its users, by their names. */
export const accounts: ArchivedAccounts = {
  tables: [],
  openFile: () => undefined,
  exportUsers: async () => ({}),
  importUsers: async (transaction, files) => {
    for (const each of JSON.parse(String(files['users.json'] ?? '[]')))
      await transaction.query('insert into sample.users values ($1)', [each])
  },
}

export const digestOf = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')

export function makeFolder() {
  const folder = fs.mkdtempSync(join(tmpdir(), 'repository-'))
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A store in either form, and the blobs that it has. */
export interface SampleStore {
  sql: Sql
  blobs: Map<string, Buffer>
  users: string[]
  source: BackupSource
}

function storeOf(database: Sql): SampleStore {
  const blobs = new Map<string, Buffer>()
  const store: SampleStore = {
    sql: database,
    blobs,
    users: ['adam'],
    source: {
      async read(work) {
        await database.snapshot((snapshot) => {
          const rows = async function* () {
            yield await snapshot.all<BlobRef & Row>(
              sql`select distinct digest, size from ${name('files')} order by digest`,
            )
          }
          const files = { 'users.json': JSON.stringify(store.users) }
          return work.rows([...readTables(snapshot, tables), { name: 'blobs', rows }], files)
        })
        await work.blobs(async (digest) => {
          const content = blobs.get(digest)
          return content && openBytes(content)
        })
      },
      [Symbol.asyncDispose]: async () => undefined,
    },
  }
  return store
}

/** A store in a folder. */
export async function openInFolder(folder: string): Promise<SampleStore> {
  fs.mkdirSync(folder, { recursive: true })
  const database = new SqliteSql({ file: join(folder, databaseName), migrations })
  onTestFinished(() => database.close())
  return storeOf(database)
}

/** A store in PostgreSQL. */
export async function openInPostgres({ url = '', isRestore = true } = {}) {
  if (!url) {
    const created = await testDatabase()
    onTestFinished(() => created[Symbol.asyncDispose]())
    url = created.url
  }
  const database = await Postgres.open({
    url,
    maxConnections: 3,
    timeoutMs: 150_000,
    schema,
    isRestore,
    migrations: { ...migrations, ...users },
    onError: () => undefined,
  })
  onTestFinished(() => database.close())
  return { url, database, ...storeOf(database) }
}

/** Adds items, of which the last is deleted, and files with these contents. */
export async function fill({ sql: database, blobs }: SampleStore, count: number, contents: Buffer[]) {
  await database.transaction(async (transaction) => {
    for (let id = 1; id <= count + 1; id += 1) {
      const item = [id % 7 ? `ä ${id}` : null, Buffer.from([0, id % 256])]
      await transaction.run(sql`insert into ${name('items')} (name, bytes) values (${item[0]}, ${item[1]})`)
    }
    await transaction.run(sql`delete from ${name('items')} where id = ${count + 1}`)
    await transaction.run(sql`insert into ${name('pages')} values (1, 2), (1, 1)`)
    for (const content of contents) {
      const digest = digestOf(content)
      blobs.set(digest, content)
      await transaction.run(
        sql`insert into ${name('files')} values (${`file ${blobs.size}`}, ${digest}, ${content.length})`,
      )
    }
  })
}

export async function contentsOf({ sql: database }: SampleStore) {
  return {
    items: await database.all(sql`select * from ${name('items')} order by id`),
    pages: await database.all(sql`select * from ${name('pages')} order by pass, page`),
    files: await database.all(sql`select * from ${name('files')} order by path`),
  }
}

interface JobOptions {
  verify?: boolean
  skipDamaged?: boolean
  signal?: AbortSignal
  /** Called after each blob. */
  onBlob?: () => void
}

const jobOf = ({ verify = false, skipDamaged = false, signal, onBlob }: JobOptions) => ({
  verify,
  skipDamaged,
  progress: Object.assign(new Progress(new PassThrough()), onBlob && { blob: onBlob }),
  signal: signal ?? new AbortController().signal,
})

export async function runBackup(store: SampleStore, folder: string, options: JobOptions = {}) {
  using repository = await Repository.openWriter(folder, 'sample')
  return await backUp({ service: 'sample', source: store.source, repository, ...jobOf(options) })
}

interface Target {
  dataDir: string
  database?: Postgres
  blobs?: Map<string, Buffer>
  /** Called before each batch of rows. */
  onRows?: (table: string, count: number) => void
}

/** Restores the newest backup of a folder. */
export async function runRestore(
  { dataDir, database, blobs = new Map(), onRows }: Target,
  folder: string,
  options: JobOptions = {},
) {
  const targetOf = (into: Sql) => ({
    async write(table: string, rows: Row[], backup: { open: (ref: BlobRef) => Promise<OpenBlob | undefined> }) {
      onRows?.(table, rows.length)
      if (table === 'files') {
        for (const row of rows) {
          const ref = { digest: String(row.digest), size: Number(row.size) }
          await using blob = await backup.open(ref)
          if (blob) blobs.set(ref.digest, await blob.read(0, blob.size))
        }
      }
      await writeRows(into, table, rows)
    },
  })
  const service: ArchivedService = {
    name: 'sample',
    tables,
    accounts,
    openFolder: async (into) => {
      const opened = new SqliteSql({ file: join(into, databaseName), migrations })
      return { ...targetOf(opened), database: opened, [Symbol.asyncDispose]: () => opened.close() }
    },
    openDatabase: async () => {
      if (!database) throw new Error('no database')
      return { ...targetOf(database), database, [Symbol.asyncDispose]: async () => undefined }
    },
  }
  using repository = Repository.openReader(folder)
  const snapshot = await repository.snapshot()
  const into = { places: { dataDir }, database: database && {} }
  return await restore({ service, ...into, repository, snapshot, ...jobOf(options) })
}
