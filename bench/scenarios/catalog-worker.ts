// Prints how long the questions of the static service's catalog take at 10,000 and 1,000,000 files, and for how long
// they held up everything else. Asserts nothing. `node bench/scenarios/catalog-worker.ts [rows…] [postgres://…]`; the
// databases stay in $TMPDIR/bench-catalog-<rows> for the next run. With the URL of a PostgreSQL database, that is measured
// instead, after as many files are stored in it if it is empty.
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Postgres } from '../../packages/persistence/src/index.ts'
import type { Catalog } from '../../packages/static-service/src/catalog/catalog.ts'
import { ChangeGroups } from '../../packages/static-service/src/catalog/changes/change-groups.ts'
import type { ListQuery } from '../../packages/static-service/src/catalog/listing/list-query.ts'
import { schemaName } from '../../packages/static-service/src/catalog/migrations.ts'
import { openPostgresCatalog } from '../../packages/static-service/src/catalog/postgres/postgres-catalog.ts'
import {
  databaseFile,
  openDatabase,
  openSqliteCatalog,
} from '../../packages/static-service/src/catalog/sqlite/sqlite-catalog.ts'
import type { NewFile } from '../../packages/static-service/src/catalog/tables.ts'
import { sharedMigrations } from '../../packages/static-service/src/shared-storage.ts'
import { median } from '../harness/rounds.ts'

const history = { keepDays: 30, keepVersions: 0, entryDays: 0 }

export type Found = Record<string, { p50: number; p99: number }>

/** Milliseconds of each question at so many files in SQLite. */
export async function measure(rows: number): Promise<Found> {
  const catalog = await open(rows)
  const found = await ask(catalog, rows)
  await catalog.close()
  return found
}

async function open(rows: number, { hasPast = false } = {}): Promise<Catalog> {
  const folder = join(tmpdir(), `bench-catalog-${rows}${hasPast ? '-past' : ''}`)
  mkdirSync(folder, { recursive: true })
  if (!existsSync(`${folder}/made`)) await make(folder, rows, hasPast)
  const megabytes = Math.round(statSync(databaseFile(folder)).size / 1e6)
  process.stdout.write(`\n${rows} files, database of ${megabytes} MB\n`)
  return openSqliteCatalog(folder, { history })
}

/**
 * Median milliseconds of listing and search, round by round, where each file was stored before with another content, and
 * where none was. The two are asked in turns, each time after a change elsewhere: a busy machine delays both.
 */
export async function measureLists(
  rows: number,
  rounds: number,
): Promise<Record<string, { past: number[]; none: number[] }>> {
  const catalogs = { past: await open(rows, { hasPast: true }), none: await open(rows) }
  const questions = {
    past: questionsOf(catalogs.past, rows),
    none: questionsOf(catalogs.none, rows),
  }
  const found: Record<string, { past: number[]; none: number[] }> = {}
  const names = Object.keys(questions.past).filter((name) => /^(?:list|search)/.test(name))
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) {
      const times = { past: [] as number[], none: [] as number[] }
      while (times.none.length < 100) {
        for (const side of ['past', 'none'] as const) {
          await changeElsewhere(catalogs[side])
          const start = performance.now()
          await questions[side][name]?.()
          times[side].push(performance.now() - start)
        }
      }
      found[name] ??= { past: [], none: [] }
      found[name].past.push(median(times.past))
      found[name].none.push(median(times.none))
    }
  }
  for (const catalog of Object.values(catalogs)) await catalog.close()
  return found
}

/** Milliseconds of each question at so many files in PostgreSQL: asked again, and after a change elsewhere. */
export async function measurePostgres(rows: number, url: string): Promise<{ again: Found; changed: Found }> {
  const postgres = await Postgres.open({
    url,
    maxConnections: 4,
    timeoutMs: 600_000,
    schema: schemaName,
    migrations: sharedMigrations,
    onError: (error) => process.stderr.write(`${error}\n`),
  })
  const contents = { findMissing: async () => new Set<string>(), apply: async () => undefined }
  const catalog = await openPostgresCatalog(postgres, { contents })
  if ((await catalog.totals()).totalFiles < rows) await fill(postgres, catalog, rows)
  process.stdout.write(`\n${rows} files in PostgreSQL\n`)
  const again = await ask(catalog, rows)
  process.stdout.write('\nthe same, each time after a change elsewhere\n')
  const changed = await ask(catalog, rows, () => changeElsewhere(catalog))
  await catalog.close()
  await postgres.close()
  return { again, changed }
}

// Before all other files: all positions move.
async function changeElsewhere(catalog: Catalog) {
  const path = 'inbox/new.png'
  const [file] = filesFrom(0, 1, 1)
  if (await catalog.find(path)) await catalog.writes.remove({ paths: [path] })
  else if (file) await catalog.writes.put({ files: [{ ...file, path }] })
}

// The index of searches is built afterwards, which is many times faster.
async function fill(postgres: Postgres, catalog: Catalog, rows: number) {
  const [index] = await postgres.query<{ indexdef: string }>(
    "select indexdef from pg_indexes where indexname = 'files_by_trigrams'",
  )
  await postgres.query('drop index if exists static_service.files_by_trigrams')
  for (let from = 0; from < rows; from += 1000) await catalog.writes.put({ files: filesFrom(from, rows, 1000) })
  if (index) await postgres.query(index.indexdef)
  await postgres.query('vacuum analyze static_service.files')
}

function questionsOf(catalog: Catalog, rows: number): Record<string, () => Promise<unknown>> {
  const list = (query: Partial<ListQuery>) => () =>
    catalog.reads.list({ sort: 'path', page: 1, page_size: 50, ...query })
  return {
    'find one': () => catalog.find(pathOf(rows >> 1)),
    'list, first page': list({}),
    'list, newest first': list({ sort: '-updated_at' }),
    'list, a category by size': list({ category: 'video', sort: '-size' }),
    'list, page in the middle': list({ page: Math.floor(rows / 100) }),
    'list, last page': list({ page: Math.ceil(rows / 50) }),
    'search, one file': list({ search: nameOf(rows >> 2) }),
    'search, nothing': list({ search: 'xyzzy' }),
    'search, 1 of 200': list({ search: 'shelf-117/' }),
    'search, 1 of 10': list({ search: 'lantern', sort: '-updated_at' }),
    'search, all': list({ search: 'room' }),
    'search, the end of an order': list({ search: 'room-9/' }),
    'search, one letter': list({ search: 'e' }),
    'search, two letters': list({ search: 'zq' }),
    'search, in a category': list({ search: 'lantern', category: 'font' }),
    'tree, one level': () => catalog.reads.tree({ prefix: 'room-3', depth: 1 }),
    'tree, 10,000 nodes': () => catalog.reads.tree({ prefix: '', depth: 32 }),
    categories: () => catalog.reads.usage(''),
    stats: () => catalog.totals(),
  }
}

async function ask(catalog: Catalog, rows: number, prepare?: () => Promise<unknown>): Promise<Found> {
  const found: Found = {}
  process.stdout.write(`${'question'.padEnd(28)}   first      p50      p99   longest block (ms)\n`)
  for (const [name, task] of Object.entries(questionsOf(catalog, rows))) {
    const { first, times, block } = await time(task, prepare)
    const [p50, p99] = [at(times, 0.5), at(times, 0.99)]
    found[name] = { p50, p99 }
    const figures = [first, p50, p99, block].map((ms) => ms.toFixed(2).padStart(9))
    process.stdout.write(`${name.padEnd(26)}${figures.join('')}\n`)
  }
  return found
}

// The loop is sampled each millisecond: a block is what a sample comes late by.
async function time(task: () => Promise<unknown>, prepare?: () => Promise<unknown>) {
  const begin = performance.now()
  await task()
  const first = performance.now() - begin
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const times: number[] = []
  delay.enable()
  for (const end = performance.now() + 1500; performance.now() < end && times.length < 300; ) {
    await prepare?.()
    const start = performance.now()
    await task()
    times.push(performance.now() - start)
    await new Promise((resolve) => setImmediate(resolve))
  }
  delay.disable()
  return { first, times: times.sort((one, other) => one - other), block: delay.max / 1e6 - 1 }
}

const at = (sorted: number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0

async function make(folder: string, rows: number, hasPast: boolean) {
  const start = performance.now()
  const sql = openDatabase(databaseFile(folder))
  sql.database.pragma('synchronous = OFF')
  sql.database.pragma('wal_autocheckpoint = 100000')
  sql.database.pragma('cache_size = -1000000')
  const changes = new ChangeGroups({ sql, history })
  const put = (files: NewFile[]) => changes.commit([{ name: 'put', input: { files } }])
  for (let from = 0; from < rows; from += 5000) {
    await put(filesFrom(from, rows, 5000))
    if (process.stderr.isTTY) process.stderr.write(`\r${from} of ${rows}`)
  }
  if (hasPast) sql.database.exec(replaceAll)
  await sql.close()
  mkdirSync(`${folder}/made`)
  const seconds = (performance.now() - start) / 1000
  process.stdout.write(`made ${rows} rows in ${seconds.toFixed(1)} s\n`)
}

// As if each file had been stored before with another content, which takes minutes less.
const replaceAll = `
  begin;
  insert into past_files select path, change_id, change_id + last_change, updated_at, 'f' || substr(digest, 2), size,
    content_type, category, uploaded_by, created_at, updated_at from files, catalog;
  insert into blobs select digest, size, 0, 1 from past_files;
  insert into changed_files select change_id + last_change, path, change_id, after, after from changed_files, catalog;
  insert into changes select id + last_change, at, changed_by, token, request_id, action, prefix, version, 0, added, 0,
    bytes, paths, 0 from changes, catalog;
  update files set change_id = change_id + (select last_change from catalog);
  update catalog set last_change = last_change * 2, past_size = (select sum(size) from past_files);
  commit`

const filesFrom = (from: number, rows: number, count: number): NewFile[] =>
  Array.from({ length: Math.min(count, rows - from) }, (_, offset) => {
    const number = from + offset
    const [extension, contentType, category] = kinds[number % kinds.length] ?? kinds[0]
    return {
      path: `${pathOf(number)}.${extension}`,
      digest: number.toString(16).padStart(64, '0'),
      size: (number * 7919) % 1_000_003,
      contentType,
      category,
      uploadedBy: 'bench',
    }
  })

const kinds = [
  ['png', 'image/png', 'image'],
  ['html', 'text/html', 'code'],
  ['mp4', 'video/mp4', 'video'],
  ['txt', 'text/plain', 'document'],
  ['json', 'application/json', 'data'],
] as const

const words = 'lantern harbour meadow copper violet thistle marble ember willow falcon'.split(' ')

// Numbers in an order that scatters neighbours, as uploads do.
function pathOf(number: number) {
  const scattered = (number * 7_368_787) % 1_000_003
  return `room-${scattered % 20}/shelf-${(scattered >> 5) % 200}/${nameOf(number)}`
}

function nameOf(number: number) {
  return `${words[number % words.length]}-${words[(number >> 4) % words.length]}-${number}`
}

if (import.meta.main) {
  const url = process.argv.slice(2).find((argument) => argument.startsWith('postgres'))
  const sizes = process.argv.slice(2).filter((argument) => argument !== url)
  for (const rows of sizes.length > 0 ? sizes.map(Number) : [10_000, 1_000_000]) {
    await (url ? measurePostgres(rows, url) : measure(rows))
  }
}
