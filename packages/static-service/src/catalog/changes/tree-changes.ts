import type { TagList } from '@domains-and-files/http'
import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { FileRow, NewFile, NewVersion } from '../../files/file-record.ts'
import { findPathFault } from '../../files/path-rules.ts'
import { filesAt, isGone } from '../history/past-files.ts'
import type { TreeState } from '../list-query.ts'
import { readLastChange, readTreeState } from '../listing/tree-files.ts'
import { recordVersion } from '../versions.ts'
import { movedPath, replaceFiles } from './apply-command.ts'
import { causeOf } from './change-entry.ts'
import { type Outcome, Rejected, type TreeCommand } from './commands.ts'
import { type Group, loadBelow, loadTarget } from './load-files.ts'
import { writeChanges } from './write-changes.ts'

/** Makes a directory what the source is. Equal files stay as they are, with their dates. @throws {Rejected} */
export async function replaceTree(group: Group, command: TreeCommand): Promise<Outcome> {
  const { table, dates, result } = await applyTree(group, command)
  const { actor, directory, version, isDryRun } = command
  if (isDryRun) {
    const files = result.files + result.added - result.removed
    return { done: 'tree', tree: { ...result, files }, freed: [], changed: [] }
  }
  const cause = causeOf(actor, isRestore(command) ? 'restore' : 'deploy', directory)
  const change = table.accept({ ...cause, version: version?.version ?? null }, dates.of())
  if (change) await writeChanges(group, { table, dates })
  // It names the change, and its name was free.
  if (version) await recordVersion(group, version)
  const state = await readTreeState(group.transaction, directory)
  const tree = { ...result, ...state, change: change ?? null }
  return { done: 'tree', tree, freed: result.freed, changed: result.changed }
}

const isRestore = ({ source, directory }: TreeCommand) =>
  'from' in source && (source.change !== undefined || source.from === directory)

async function applyTree(group: Group, command: TreeCommand) {
  const { transaction } = group
  const { directory, source, isMerge, maxFiles, quota, version, conditions } = command
  const state = await readTreeState(transaction, directory)
  if (!holdsForTree(conditions, state)) throw new Rejected('tree_changed', directory)
  if (version && (await isRecorded(transaction, version)))
    throw new Rejected('version_exists', version.version)
  const files = await filesOf(group, command)
  if (!isMerge && state.files > maxFiles) throw new Rejected('tree_too_large', directory)
  const before = isMerge ? [] : await loadBelow(transaction, directory, { limit: maxFiles })
  const paths = [...before, ...files].map(({ path }) => path)
  const target = await loadTarget(group, paths, { digests: files.map(({ digest }) => digest) })
  if ('files' in source) {
    const isStored = (digest: string) =>
      !source.areStored || target.table.blobs.get(digest) !== undefined
    const lost = files.find(({ digest }) => group.missing.has(digest) || !isStored(digest))
    if (lost) throw new Rejected('content_missing', lost.path)
  }
  const counts = replaceFiles(target, { before, files, quota })
  return { ...target, result: { ...state, ...counts, change: null } }
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
    throw new Rejected('change_not_found', String(change))
  if (change !== undefined && (await isGone(transaction, { directory: from, change })))
    throw new Rejected('history_gone', from)
  const rows: FileRow[] = await (change === undefined
    ? loadBelow(transaction, from, scope)
    : filesAt(transaction, scope))
  if (rows.length > maxFiles) throw new Rejected('tree_too_large', source.from)
  if (rows.length === 0) throw new Rejected('directory_not_found', source.from)
  const copy = (row: FileRow): NewFile => {
    const path = movedPath(row.path, { from: source.from, to: directory, overwrite: true })
    if (findPathFault(path)) throw new Rejected('invalid_target', path)
    const { digest, size, contentType, category } = row
    return { path, digest, size, contentType, category, uploadedBy: actor.by }
  }
  return rows.map(copy)
}

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
