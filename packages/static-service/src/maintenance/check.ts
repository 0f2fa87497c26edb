import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { lockDataDir } from '@domains-and-files/persistence'
import { blobPathOf, encodedForms } from '../blobs/blob-path.ts'
import { prefixes, readShard, type Shard } from '../blobs/blob-scan.ts'
import { hashFile, hashForm } from '../blobs/hashing.ts'
import { type Database, databaseFile, openReader } from '../catalog/database.ts'
import { unflushedIn } from '../catalog/unflushed-contents.ts'
import { findMiscounts } from './consistency-rules.ts'

export interface Damage {
  /** The path of a file, or what else is damaged. */
  path: string
  fault: string
}

export interface Report {
  files: number
  contents: number
  bytes: number
  damages: Damage[]
  /** What lies on the disk and nothing refers to, by its path below the data folder; harmless. */
  orphans: string[]
}

export interface CheckOptions {
  dataDir: string
  /** Drops the orphans, and compressed forms that are damaged. No service may be using the folder. */
  repair: boolean
  onProgress: (progress: { contents: number; bytes: number; of: number }) => void
}

/**
 * Reads every stored byte and compares it with its digest, every row with its content, and every count with what it
 * counts. Changes nothing unless asked to repair; a damaged content is never removed.
 * @throws {NoStore} when there is none, {FolderRefused} when one that a service uses is to be repaired.
 */
export async function check({ dataDir, repair, onProgress }: CheckOptions): Promise<Report> {
  const file = databaseFile(dataDir)
  if (!existsSync(file)) throw new NoStore(`There is no store in ${dataDir}.`)
  const unlock = repair ? lockDataDir(dataDir) : () => undefined
  const db = openReader(file)
  try {
    const of = countRows(db, 'blobs')
    const report: Report = {
      files: countRows(db, 'files'),
      contents: 0,
      bytes: 0,
      damages: findMiscounts(db),
      orphans: [],
    }
    for (const prefix of prefixes) {
      const shard = await readShard(dataDir, prefix)
      await checkShard({ db, dataDir, report, repair }, prefix, shard)
      onProgress({ contents: report.contents, bytes: report.bytes, of })
    }
    if (repair) await dropOrphans(dataDir, report)
    return report
  } finally {
    db.close()
    unlock()
  }
}

/** There is nothing to check. */
export class NoStore extends Error {}

interface Work {
  db: Database
  dataDir: string
  report: Report
  repair: boolean
}

async function checkShard(work: Work, prefix: string, shard: Shard) {
  const { db, dataDir, report } = work
  const rows = db
    .prepare<[string, string], { digest: string; size: number }>(
      'select digest, size from blobs where digest between ? and ?',
    )
    .all(prefix, `${prefix}g`)
  for (const { digest, size } of rows) {
    const fault = await judge(join(dataDir, 'blobs', ...blobPathOf(digest)), digest, size)
    if (fault) {
      const told = unflushedIn(db).has(digest) ? `${fault}; the next start brings it back` : fault
      report.damages.push(...pathsOf(db, digest).map((path) => ({ path, fault: told })))
    }
    report.contents += 1
    report.bytes += size
    if (shard.forms.has(digest)) await checkForms(work, digest)
  }

  // Asked again, since a service may have stored it meanwhile.
  const isReferenced = db.prepare('select 1 from blobs where digest = ?')
  for (const digest of new Set([...shard.digests, ...shard.forms])) {
    if (isReferenced.get(digest)) continue
    const names = ['identity' as const, ...encodedForms].map((form) => blobPathOf(digest, form))
    const files = names.map((name) => join('blobs', ...name))
    report.orphans.push(...files.filter((name) => existsSync(join(dataDir, name))))
  }
  report.orphans.push(...shard.strangers.map((name) => join('blobs', name)))
}

async function judge(file: string, digest: string, size: number): Promise<string | undefined> {
  const found = await hashFile(file)
  if (!found) return 'its content is missing'
  if (found.size !== size) return `its content has ${found.size} bytes instead of ${size}`
  if (found.digest !== digest) return 'its content has been altered'
  return undefined
}

async function checkForms({ db, dataDir, report, repair }: Work, digest: string) {
  for (const form of encodedForms) {
    const file = join(dataDir, 'blobs', ...blobPathOf(digest, form))
    if (!existsSync(file) || (await hashForm(file, form)) === digest) continue
    const fault = `its ${form} form is damaged`
    if (repair) await rm(file)
    else report.damages.push(...pathsOf(db, digest).map((path) => ({ path, fault })))
  }
}

async function dropOrphans(dataDir: string, report: Report) {
  for (const name of await readdir(join(dataDir, 'tmp'))) report.orphans.push(join('tmp', name))
  for (const name of report.orphans) await rm(join(dataDir, name), { recursive: true, force: true })
}

const pathsOf = (db: Database, digest: string) =>
  db
    .prepare<[string], string>('select path from files where digest = ? order by path')
    .pluck()
    .all(digest)

const countRows = (db: Database, table: 'files' | 'blobs') =>
  db.prepare<[], number>(`select count(*) from ${table}`).pluck().get() ?? 0
