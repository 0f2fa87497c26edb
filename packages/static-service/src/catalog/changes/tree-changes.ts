import { name, sql } from '@domains-and-files/persistence'
import * as errors from '../../errors.ts'
import { readPath } from '../../files/file-path.ts'
import { filesAt, readTreeState, requireKept, type TreeState } from '../history/past-files.ts'
import type { Actor, ChangeEntry, FileRow, NewFile } from '../tables.ts'
import { type NewVersion, recordVersion } from '../versions.ts'
import { loadBelow } from './directory-changes.ts'
import { type Conditions, holdsForTags, movedPath, replaceFiles } from './file-changes.ts'
import type { Group } from './group.ts'
import { loadFiles, writeChanges } from './stored-rows.ts'

export interface TreeReplacement {
  actor: Actor
  /** The root is empty. */
  directory: string
  source: TreeSource
  /** Keeps files that the source does not name. */
  isMerge: boolean
  /** Preconditions on the entity tag of the tree. */
  conditions: Pick<Conditions, 'ifMatch' | 'ifNoneMatch'>
  version: NewVersion | undefined
  isDryRun: boolean
  /** Maximum files of the tree before and after. */
  maxFiles: number
}

export type TreeSource =
  /** `areStored`: their blobs did not arrive with the request; rejected if no file has them any more. */
  | { files: NewFile[]; areStored: boolean }
  /** A directory, possibly the same: its current state, or the state after a change. */
  | { from: string; change?: number | undefined }

export interface TreeChange extends TreeState, Pick<ChangeEntry, 'added' | 'replaced' | 'removed'> {
  /** Null: nothing was changed. */
  change: ChangeEntry | null
  unchanged: number
  /** The files that were stored. */
  rows: FileRow[]
}

/**
 * Replaces a directory by the source, for any number of files. Unchanged files keep their rows and dates.
 * @throws {HttpError} `precondition_failed`, `version_exists`, `tree_too_large`, `directory_not_found`, `path_conflict`,
 *   `invalid_path`, `reserved_path` or `quota_exceeded`.
 */
export async function replaceTree(group: Group, wanted: TreeReplacement): Promise<TreeChange> {
  const { table, result } = await applyTree(group, wanted)
  const { actor, directory, version, isDryRun, source } = wanted
  if (isDryRun) return { ...result, files: result.files + result.added - result.removed }
  const action = 'from' in source && source.change !== undefined ? 'restore' : 'deploy'
  const change = table.accept({ ...actor, action, prefix: `${directory}/`, version: version?.version ?? null })
  await writeChanges(group)
  // Recorded last: it refers to the change. Its name was checked before.
  if (version) await recordVersion(group, version)
  return { ...result, ...(await readTreeState(group.transaction, directory)), change: change ?? null }
}

async function applyTree(group: Group, wanted: TreeReplacement) {
  const { transaction } = group
  const { directory, source, isMerge, maxFiles, version, conditions } = wanted
  const state = await readTreeState(transaction, directory)
  if (!holdsForTags(conditions, state.files > 0 ? [state.etag] : undefined)) throw errors.treeChanged(directory)
  const known = version && sql`select 1 from ${name('versions')} where version = ${version.version}`
  if (known && (await transaction.get(known))) throw errors.versionExists(version.version)
  const files = await filesOf(group, wanted)
  if (!isMerge && state.files > maxFiles) throw tooManyFiles(directory)
  const before = isMerge ? [] : await loadBelow(transaction, directory, { limit: maxFiles })
  const paths = [...before, ...files].map(({ path }) => path)
  const digests = files.map(({ digest }) => digest)
  const table = await loadFiles(group, paths, { digests, areNew: 'files' in source })
  const isLost = (digest: string) =>
    table.missing.has(digest) || ('files' in source && source.areStored && !table.blobs.get(digest))
  if (digests.some(isLost)) throw errors.contentMissing()
  const counts = replaceFiles(table, { before, files })
  return { table, result: { ...state, ...counts, change: null } }
}

async function filesOf(
  { transaction }: Group,
  { source, directory, actor, maxFiles }: TreeReplacement,
): Promise<NewFile[]> {
  if ('files' in source) return source.files
  const { from, change } = source
  if (change !== undefined) await requireKept(transaction, { directory: from, change })
  const rows = await filesAt(transaction, { directory: from, change, after: '', limit: maxFiles + 1 })
  if (rows.length > maxFiles) throw tooManyFiles(from)
  if (rows.length === 0) throw errors.directoryNotFound(from)
  return rows.map(({ path, digest, size, contentType, category }) => {
    const target = readPath(movedPath(path, { from, to: directory }))
    return { path: target, digest, size, contentType, category, uploadedBy: actor.by }
  })
}

const tooManyFiles = (directory: string) => errors.treeTooLarge(`MAX_TREE_FILES files below ${directory}/`)
