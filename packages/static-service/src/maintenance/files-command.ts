import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { dataDirOf } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import {
  type BlobRef,
  type CommandLine,
  DatabaseUnavailableError,
  DataDirError,
  findFault,
  lockDataDir,
  type Progress,
  runMaintenance,
  unreadable,
} from '@domains-and-files/persistence'
import { type BlobStore, digestPrefixes } from '../blobs/blob-store.ts'
import { blobDatabaseFile, blobDatabaseName } from '../blobs/disk/small-blobs.ts'
import { findMiscounts, type Miscount } from '../catalog/find-miscounts.ts'
import { hasCatalog } from '../catalog/sqlite/sqlite-catalog.ts'
import { openFolder, openShared, refusalOf, type Stores, throwExplained } from './stores.ts'

const usage = `Usage: npm run files -- check [--repair]

Compares every stored content of DATA_DIR (default: data/static-service), or of DATABASE_URL and S3_BUCKET, with its
digest, goes on past what cannot be read, and names each damaged file with the reason. Exit status 1 if there are any.
--repair removes what no file refers to; a service that uses DATA_DIR must be stopped.
`

/** Runs the command with these arguments, and returns its exit status. */
export const manageFiles = (args: string[], line: CommandLine): Promise<number> =>
  runMaintenance(line, { usage, args, read: readArguments }, async (options, progress) => {
    const report = await check(line.env, { ...options, progress })
    const status = report.damages.length > 0 ? 1 : 0
    return { summary: describe(report, options.repair), status }
  })

function readArguments(args: string[]) {
  const options = { repair: { type: 'boolean', default: false } } as const
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
  return positionals.join(' ') === 'check' ? values : undefined
}

function describe({ files, contents, bytes, damages, orphans }: Report, isRepaired: boolean) {
  const lines = [
    ...damages.map(({ path, fault }) => `damaged: ${path}: ${fault}`),
    ...orphans.map((name) => `${isRepaired ? 'removed' : 'orphan'}: ${name}`),
    `${files} files, ${contents} contents, ${bytes} bytes: ${damages.length > 0 ? `${damages.length} damaged` : 'all sound'}`,
  ]
  if (orphans.length > 0 && !isRepaired) {
    lines.push(`${orphans.length} orphans only take up space: --repair removes them`)
  }
  return lines.join('\n')
}

interface Report {
  files: number
  contents: number
  bytes: number
  damages: Miscount[]
  /** Digests of unreferenced blobs; harmless. */
  orphans: string[]
}

interface CheckOptions {
  /** Removes orphans. No service may be using a data directory. */
  repair?: boolean
  progress?: Progress
}

/**
 * Verifies every blob against its digest, every row against its blob, and every counter, in the stores that the
 * environment names. Reports unreadable blobs as damage and continues. Changes nothing unless `repair` is set; never
 * removes a damaged blob.
 * @throws {DataDirError} when a store cannot be used.
 */
export async function check(env: NodeJS.ProcessEnv, options: CheckOptions = {}): Promise<Report> {
  if (env.DATABASE_URL || env.DATABASE_URL_FILE) {
    await using stores = await openShared(env)
    return await checkStores(stores, options)
  }
  const dataDir = dataDirOf('static-service', env)
  if (!hasCatalog(dataDir)) throw new DataDirError(`There is no store in ${dataDir}.`)
  if (!existsSync(blobDatabaseFile(dataDir)))
    throw new DataDirError(`There is no ${blobDatabaseName} in ${dataDir}: restore it from a backup.`)
  await using lock = new AsyncDisposableStack()
  if (options.repair) lock.defer(lockDataDir(dataDir)) // Opening removes temporary files.
  await using stores = await openFolder(dataDir, { isReadOnly: !options.repair })
  return await checkStores(stores, options)
}

async function checkStores({ catalog, blobs }: Stores, options: CheckOptions): Promise<Report> {
  const { totalFiles, storedSize, pastSize } = await catalog.totals()
  const report: Report = { files: totalFiles, contents: 0, bytes: 0, damages: [], orphans: [] }
  report.damages.push(...(await findMiscounts(catalog.database)))
  options.progress?.begin('checked', { count: totalFiles, bytes: storedSize + pastSize })
  for (const prefix of digestPrefixes(totalFiles))
    await checkPart({ ...options, catalog, blobs, report }, prefix).catch(throwExplained)
  return report
}

interface Check extends CheckOptions, Pick<Stores, 'catalog' | 'blobs'> {
  report: Report
}

async function checkPart(check: Check, prefix: string): Promise<void> {
  const { catalog, blobs, report, progress } = check
  const known = await catalog.reads.contents(prefix)
  for (const blob of known) {
    const fault = await faultOf(blobs, blob)
    // Only files and their past that still have it: a running service may have deleted the others.
    const paths = fault ? await catalog.pathsOf(blob.digest) : []
    report.damages.push(...paths.map((path) => ({ path, fault: `its content ${fault}` })))
    report.contents += 1
    report.bytes += blob.size
    progress?.blob(blob)
  }
  await findOrphans(check, prefix, new Set(known.map(({ digest }) => digest)))
}

async function faultOf(blobs: BlobStore, ref: BlobRef): Promise<string | undefined> {
  try {
    await using blob = await blobs.open(ref.digest)
    return await findFault(blob, ref)
  } catch (error) {
    return whyUnreadable(error)
  }
}

async function findOrphans({ catalog, blobs, report, repair }: Check, prefix: string, known: Set<string>) {
  const stored = await blobs.digests?.(prefix).catch((error): string[] => {
    report.damages.push({ path: `the blobs that begin with ${prefix}`, fault: whyUnreadable(error) })
    return []
  })
  const orphans: string[] = []
  for (const digest of stored ?? []) {
    // Checks again: a running service may have stored it meanwhile.
    if (!known.has(digest) && !(await catalog.isReferenced(digest))) orphans.push(digest)
  }
  report.orphans.push(...orphans)
  if (repair) await blobs.removeOrphans?.(orphans)
}

/** @throws the error if the store is unavailable: that is no damage. */
function whyUnreadable(error: unknown): string {
  const refusal = refusalOf(error)
  if (refusal) return unreadable(refusal)
  if (error instanceof HttpError || error instanceof DatabaseUnavailableError) throw error
  return unreadable(error)
}

if (import.meta.main) process.exitCode = await manageFiles(process.argv.slice(2), process)
