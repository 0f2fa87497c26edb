import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { lockDataDir, type Progress, unreadable } from '@domains-and-files/persistence'
import { blobPathOf, type CompressedCoding, contentCodings } from '../blobs/blob-path.ts'
import {
  blobDatabaseFile,
  blobDatabaseName,
  openBlobDatabase,
} from '../blobs/disk/blob-database.ts'
import { prefixes, readShard, type Shard } from '../blobs/disk/blob-scan.ts'
import { prepareRemove } from '../blobs/disk/blob-statements.ts'
import type { Miscount } from '../catalog/catalog-archive.ts'
import { databaseFile } from '../catalog/sqlite/open-sqlite.ts'
import { openSqliteCatalog } from '../catalog/sqlite/sqlite-catalog.ts'
import { type Database, openReader } from '../sqlite/connection.ts'
import { ContentCheck } from './content-check.ts'

export interface Report {
  files: number
  contents: number
  bytes: number
  damages: Damage[]
  /** What is stored and no file refers to, by its path below the data folder; harmless. */
  orphans: string[]
}

export interface CheckOptions {
  /** Removes orphans and damaged compressed forms. No service may be using the folder. */
  repair?: boolean
  progress?: Progress
}

/**
 * Compares every stored byte with its digest, every row with its content, and every count with what it counts. Goes on
 * past what it cannot read and reports it as damage. Changes nothing unless `repair` is set; never removes a damaged
 * content.
 * @throws {NoStore} if there is none, {DataDirError} if a service uses one that is to be repaired.
 */
export async function check(
  dataDir: string,
  { repair = false, progress }: CheckOptions = {},
): Promise<Report> {
  const file = databaseFile(dataDir)
  if (!existsSync(file)) throw new NoStore(`There is no store in ${dataDir}.`)
  const unlock = repair ? lockDataDir(dataDir) : () => undefined
  const db = openReader(file)
  try {
    using contents = new ContentCheck(dataDir)
    progress?.begin('checked', countContents(db))
    const report: Report = {
      files: countFiles(db),
      contents: 0,
      bytes: 0,
      damages: await findMiscounts(dataDir, db),
      orphans: [],
    }
    const fault = contents.findFault()
    if (fault) report.damages.push({ path: 'the content database', fault })
    const work: Work = { db, contents, dataDir, report, progress, damagedForms: [] }
    for (const prefix of prefixes) await checkShard(work, prefix)
    if (repair) await removeUseless(work)
    else report.damages.push(...work.damagedForms.flatMap((each) => describeForm(db, each)))
    return report
  } finally {
    db.close()
    unlock()
  }
}

export type Damage = Miscount

async function findMiscounts(dataDir: string, db: Database): Promise<Damage[]> {
  const integrity = db.pragma('quick_check(10)', { simple: true })
  const faults = integrity === 'ok' ? [] : [{ path: 'the database', fault: String(integrity) }]
  const catalog = await openSqliteCatalog(dataDir, { isReadOnly: true })
  try {
    return [...faults, ...(await catalog.findMiscounts())]
  } finally {
    await catalog.close()
  }
}

/** There is nothing to check. */
export class NoStore extends Error {}

interface Form {
  digest: string
  coding: CompressedCoding
}

interface Work {
  db: Database
  contents: ContentCheck
  dataDir: string
  report: Report
  progress: Progress | undefined
  damagedForms: Form[]
}

async function checkShard(work: Work, prefix: string) {
  const { db, contents, report, progress, damagedForms } = work
  const rows = db
    .prepare<[string, string], { digest: string; size: number }>(
      'select digest, size from blobs where digest between ? and ?',
    )
    .all(prefix, `${prefix}g`)
  for (const { digest, size } of rows) {
    const fault = await contents.findContentFault(digest, size)
    // Asked again, since a service may have deleted it meanwhile.
    if (fault) report.damages.push(...pathsOf(db, digest).map((path) => ({ path, fault })))
    for (const coding of await contents.findDamagedForms(digest, size)) {
      damagedForms.push({ digest, coding })
    }
    report.contents += 1
    report.bytes += size
    progress?.content({ size })
  }
  await findOrphans(work, prefix)
}

async function findOrphans({ db, contents, dataDir, report }: Work, prefix: string) {
  // Asked again, since a service may have stored it meanwhile.
  const select = db.prepare('select 1 from blobs where digest = ?')
  const isOrphan = (digest: string) => select.get(digest) === undefined
  const shard = await readShard(dataDir, prefix).catch((error): Shard => {
    report.damages.push({ path: `the folder blobs/${prefix}`, fault: unreadable(error) })
    return { digests: new Set(), forms: new Set(), strangers: [] }
  })
  for (const digest of new Set([...shard.digests, ...shard.forms])) {
    if (!isOrphan(digest)) continue
    const names = contentCodings.map((coding) => join('blobs', ...blobPathOf(digest, coding)))
    report.orphans.push(...names.filter((name) => existsSync(join(dataDir, name))))
  }
  report.orphans.push(...shard.strangers.map((name) => join('blobs', name)))
  const rows = contents.digests(prefix).filter(isOrphan)
  report.orphans.push(...rows.map((digest) => `${blobDatabaseName}/${digest}`))
}

async function removeUseless({ dataDir, report, damagedForms }: Work) {
  for (const name of await readdir(join(dataDir, 'tmp'))) report.orphans.push(join('tmp', name))
  const [rows, files] = [true, false].map((isRow) =>
    report.orphans.filter((name) => name.startsWith(`${blobDatabaseName}/`) === isRow),
  )
  for (const name of files ?? []) await rm(join(dataDir, name), { recursive: true, force: true })
  const database = openBlobDatabase(blobDatabaseFile(dataDir))
  try {
    const remove = prepareRemove(database)
    for (const name of rows ?? []) remove(name.slice(blobDatabaseName.length + 1))
    for (const { digest, coding } of damagedForms) {
      remove(digest, coding)
      await rm(join(dataDir, 'blobs', ...blobPathOf(digest, coding)), { force: true })
    }
  } finally {
    database.close()
  }
}

const describeForm = (db: Database, { digest, coding }: Form): Damage[] =>
  pathsOf(db, digest).map((path) => ({ path, fault: `its ${coding} form is damaged` }))

const pathsOf = (db: Database, digest: string) =>
  db
    .prepare<[string], string>('select path from files where digest = ? order by path')
    .pluck()
    .all(digest)

const countFiles = (db: Database) =>
  db.prepare<[], number>('select count(*) from files').pluck().get() ?? 0

const countContents = (db: Database) =>
  db
    .prepare<[], { count: number; bytes: number }>(
      'select count(*) count, coalesce(sum(size), 0) bytes from blobs',
    )
    .get() ?? { count: 0, bytes: 0 }
