import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { FileRow } from '../../files/file-record.ts'
import { nameOf } from '../../files/path-segments.ts'
import type { RecordedState } from '../listing/list-changes.ts'
import { removeRows, type Target } from './apply-command.ts'
import { causeOf } from './change-entry.ts'
import { type Outcome, Rejected, type RevertCommand, refusalOf } from './commands.ts'
import type { FreedContents } from './freed-contents.ts'
import { type Group, loadTarget } from './load-files.ts'
import type { StoredFile } from './loaded-files.ts'
import { writeChanges } from './write-changes.ts'

/** A file that the change changed, and what it is going to be: undefined: no file. */
interface Reverted {
  path: string
  /** What the change left. */
  after: RecordedState | null
  before: Omit<FileRow, 'name'> | undefined
}

/** Takes back what a change did and nothing else, in one transaction. */
export async function revertChange(group: Group, command: RevertCommand): Promise<Outcome> {
  try {
    const { transaction } = group
    const files = await readReverted(transaction, command.change)
    const digests = files.flatMap(({ before }) => before?.digest ?? [])
    const target = await loadTarget(
      group,
      files.map(({ path }) => path),
      { digests },
    )
    if (!command.overwrite) refuseConflicts(target, files)
    const { table, dates } = target
    const sizeBefore = table.storedSize
    const freed = restore(target, files)
    const { quota } = command
    if (quota !== undefined && table.storedSize > Math.max(quota, sizeBefore)) {
      throw new Rejected('quota_exceeded', '')
    }
    const change = table.accept(causeOf(command.actor, 'revert'), dates.of())
    if (!change) throw new Rejected('revert_conflict', '')
    await writeChanges(group, target)
    return { done: 'revert', change, changed: 'all', freed: freed.digests }
  } catch (error) {
    return refusalOf(error)
  }
}

async function readReverted(transaction: SqlTransaction, id: number): Promise<Reverted[]> {
  const known = await transaction.get<{ isUnfinished: number }>(sql`
    select (select count(*) from ${name('unfinished_changes')} where id = ${id}) "isUnfinished"
    from ${name('changes')} where id = ${id}`)
  if (!known) throw new Rejected('change_not_found', String(id))
  if (known.isUnfinished > 0) throw new Rejected('revert_conflict', '')
  const files = await transaction.all<{
    path: string
    after: string | null
    hadFile: number | null
  }>(
    sql`select path, after, before_change "hadFile" from ${name('changed_files')}
      where change_id = ${id} order by path`,
  )
  const rows = await transaction.all<Omit<FileRow, 'name'>>(
    sql`select past.path, past.digest, past.size, content_type "contentType", category,
        uploaded_by "uploadedBy", created_at "createdAt", updated_at "updatedAt"
      from ${name('changed_files')} file
        join ${name('past_files')} past on past.path = file.path and past.change_id = file.before_change
      where file.change_id = ${id}`,
  )
  const past = new Map(rows.map((row) => [row.path, row]))
  return files.map(({ path, after, hadFile }) => {
    const before = past.get(path)
    if ((hadFile !== null && !before) || (hadFile === null && after === null)) {
      throw new Rejected('history_gone', path)
    }
    return { path, after: after && JSON.parse(after), before }
  })
}

function refuseConflicts({ table }: Target, files: Reverted[]) {
  const changed = files.filter(({ path, after }) => !isSame(table.find(path), after))
  if (changed.length > 0)
    throw new Rejected(
      'revert_conflict',
      changed.map(({ path }) => path),
    )
}

// The same content again is no conflict: so changes can be reverted one after another.
const isSame = (
  row: StoredFile | undefined,
  state: Pick<RecordedState, 'digest' | 'contentType'> | null | undefined,
) => row?.digest === state?.digest && row?.contentType === state?.contentType

// Files that go make room for those that come back: a directory may have become a file.
function restore(target: Target, files: Reverted[]): FreedContents {
  const { table, dates } = target
  const differing = files.filter(({ path, before }) => !isSame(table.find(path), before))
  const ended = differing.flatMap(({ path, before }) => (before ? [] : (table.find(path) ?? [])))
  const freed = removeRows(target, ended)
  for (const { path, before } of differing) {
    if (!before) continue
    const row = { ...before, name: nameOf(path) }
    const existing = table.find(path)
    const updatedAt = dates.of(existing?.updatedAt)
    if (existing) table.replace(existing, { ...row, updatedAt }, freed)
    else if (table.isDirectory(path) || !table.add({ ...row, updatedAt }, freed)) {
      throw new Rejected('path_conflict', path)
    }
  }
  return freed
}
