import type { TagList } from '@domains-and-files/http'
import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import * as errors from '../../errors.ts'
import { readPath } from '../../files/file-path.ts'
import type { FileRow, NewFile, NewVersion } from '../../files/file-record.ts'
import { filesAt, isGone } from '../history/past-files.ts'
import type { TreeState } from '../list-query.ts'
import { readLastChange, readTreeState } from '../listing/tree-files.ts'
import { recordVersion } from '../versions.ts'
import { movedPath, replaceFiles } from './apply-command.ts'
import { causeOf } from './change-entry.ts'
import type { Done, Group, TreeChange, TreeCommand } from './commands.ts'
import { loadBelow, loadFiles, writeChanges } from './stored-rows.ts'

/** Replaces a directory by the source. Unchanged files keep their rows and dates. @throws {HttpError} */
export async function replaceTree(group: Group, command: TreeCommand): Promise<Done<TreeChange>> {
  const { table, result } = await applyTree(group, command)
  const { actor, directory, version, isDryRun } = command
  if (isDryRun) {
    const files = result.files + result.added - result.removed
    return { value: { ...result, files } }
  }
  const cause = causeOf(actor, isPast(command.source) ? 'restore' : 'deploy', directory)
  const change = table.accept({ ...cause, version: version?.version ?? null })
  if (change) await writeChanges(group, table)
  // Recorded last: it refers to the change. Its name was checked before.
  if (version) await recordVersion(group, version)
  const state = await readTreeState(group.transaction, directory)
  const value = { ...result, ...state, change: change ?? null }
  return { value, changed: result.changed }
}

const isPast = (source: TreeCommand['source']) => 'from' in source && source.change !== undefined

async function applyTree(group: Group, command: TreeCommand) {
  const { transaction } = group
  const { directory, source, isMerge, maxFiles, version, conditions } = command
  const state = await readTreeState(transaction, directory)
  if (!holdsForTree(conditions, state)) throw errors.treeChanged(directory)
  if (version && (await isRecorded(transaction, version)))
    throw errors.versionExists(version.version)
  const files = await filesOf(group, command)
  if (!isMerge && state.files > maxFiles) throw tooManyFiles(directory)
  const before = isMerge ? [] : await loadBelow(transaction, directory, { limit: maxFiles })
  const paths = [...before, ...files].map(({ path }) => path)
  const table = await loadFiles(group, paths, { digests: files.map(({ digest }) => digest) })
  if ('files' in source) {
    const isStored = (digest: string) => !source.areStored || table.blobs.get(digest) !== undefined
    const lost = files.find(({ digest }) => group.missing.has(digest) || !isStored(digest))
    if (lost) throw errors.contentMissing()
  }
  const counts = replaceFiles(table, { before, files })
  return { table, result: { ...state, ...counts, change: null } }
}

/** The files that the directory gets. */
async function filesOf(
  { transaction }: Group,
  { source, directory, actor, maxFiles }: TreeCommand,
): Promise<NewFile[]> {
  if ('files' in source) return source.files
  const { from, change } = source
  const scope = { directory: from, change: change ?? 0, after: '', limit: maxFiles + 1 }
  if (change !== undefined && change > (await readLastChange(transaction)))
    throw errors.changeNotFound(change)
  if (change !== undefined && (await isGone(transaction, { directory: from, change })))
    throw errors.historyGone()
  const rows: FileRow[] = await (change === undefined
    ? loadBelow(transaction, from, scope)
    : filesAt(transaction, scope))
  if (rows.length > maxFiles) throw tooManyFiles(from)
  if (rows.length === 0) throw errors.directoryNotFound(from)
  const copy = (row: FileRow): NewFile => {
    const path = readPath(movedPath(row.path, { from, to: directory }))
    const { digest, size, contentType, category } = row
    return { path, digest, size, contentType, category, uploadedBy: actor.by }
  }
  return rows.map(copy)
}

const tooManyFiles = (directory: string) =>
  errors.treeTooLarge(`MAX_TREE_FILES files below ${directory}/`)

function holdsForTree(
  { ifMatch, ifNoneMatch }: TreeCommand['conditions'],
  { files, etag }: TreeState,
): boolean {
  const isNamedBy = (list: TagList) => files > 0 && (list === '*' || list.includes(etag))
  if (ifMatch !== undefined && !isNamedBy(ifMatch)) return false
  return ifNoneMatch === undefined || !isNamedBy(ifNoneMatch)
}

const isRecorded = async (transaction: SqlTransaction, { version }: NewVersion) =>
  (await transaction.get(sql`select 1 from ${name('versions')} where version = ${version}`)) !==
  undefined
