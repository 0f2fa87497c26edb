import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { changeNotFound, historyGone, revertConflict } from '../../errors.ts'
import { selected } from '../records.ts'
import { type Actor, type ChangeEntry, type FileRow, fileColumns, nobody, type RecordedState } from '../tables.ts'
import { replaceFiles } from './file-changes.ts'
import type { Group } from './group.ts'
import { loadFiles } from './stored-rows.ts'

/**
 * Reverts a change and nothing else; returns the new change. With `overwrite`, also reverts files that were changed
 * since.
 * @throws {HttpError} `change_not_found`, `revert_conflict`, `history_gone`, `path_conflict` or `quota_exceeded`.
 */
export async function revert(
  group: Group,
  { id, overwrite, actor = nobody }: { id: number; overwrite: boolean; actor?: Actor },
): Promise<ChangeEntry> {
  const files = await readReverted(group.transaction, id)
  const paths = files.map(({ path }) => path)
  const table = await loadFiles(group, paths, { digests: files.flatMap(({ before }) => before?.digest ?? []) })
  const changed = files.filter(({ path, after }) => !isSame(table.files.get(path), after))
  if (!overwrite && changed.length > 0) throw revertConflict(changed.slice(0, 10).map(({ path }) => path))
  const differing = files.filter(({ path, before }) => !isSame(table.files.get(path), before))
  replaceFiles(table, {
    before: differing.flatMap(({ path }) => table.files.get(path) ?? []),
    files: differing.flatMap(({ before }) => before ?? []),
  })
  const change = table.accept({ ...actor, action: 'revert' })
  if (!change) throw revertConflict([])
  return change
}

const { path: _, ...keptColumns } = fileColumns

/** The paths that the change changed; `before` undefined: there was no file. */
async function readReverted(transaction: SqlTransaction, id: number) {
  const known = await transaction.get<{ isUnfinished: number }>(sql`
    select (select count(*) from ${name('unfinished_changes')} where id = ${id}) "isUnfinished"
    from ${name('changes')} where id = ${id}`)
  if (!known) throw changeNotFound(id)
  if (known.isUnfinished > 0) throw revertConflict([])
  type Past = FileRow | { path: string; digest: null }
  const rows = await transaction.all<{ after: string | null; hadFile: number | null } & Past>(
    sql`select file.path, after, before_change "hadFile", ${selected(keptColumns)}
      from ${name('changed_files')} file
        left join ${name('past_files')} past on past.path = file.path and past.change_id = before_change
      where file.change_id = ${id} order by file.path`,
  )
  return rows.map(({ after, hadFile, ...row }) => {
    const before = row.digest === null ? undefined : row
    if (hadFile === null ? after === null : !before) throw historyGone()
    const state: State = after && JSON.parse(after)
    return { path: row.path, after: state, before }
  })
}

// An equal digest is no conflict, so that changes can be reverted one after another.
const isSame = (one: State, other: State) => one?.digest === other?.digest && one?.contentType === other?.contentType

type State = Pick<RecordedState, 'digest' | 'contentType'> | null | undefined
