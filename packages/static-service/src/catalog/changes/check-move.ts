import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { findPathFault } from '../../files/path-rules.ts'
import { parentOf } from '../../files/path-segments.ts'
import type { DirectoryMove } from '../catalog.ts'
import { among } from '../records.ts'
import { movedPath } from './apply-command.ts'
import type { Outcome } from './commands.ts'
import { below } from './load-files.ts'

const batchFiles = 5000

/**
 * Why a directory cannot be moved in slices, as far as can be told now; undefined: it can. What the slices move themselves is
 * not in the way.
 */
export function findMoveRefusal(
  database: Pick<Sql, 'snapshot'>,
  move: DirectoryMove,
): Promise<Outcome | undefined> {
  return database.snapshot(async (transaction) => {
    for (let last = ''; ; ) {
      const rows = await transaction.all<{ path: string }>(
        sql`select path from ${name('files')} where ${below(move.from)} and path > ${last}
          order by path limit ${batchFiles}`,
      )
      const targets = rows.map(({ path }) => movedPath(path, move))
      const refusal = await findRefusal(transaction, targets, move)
      if (refusal || rows.length < batchFiles) return refusal
      last = rows.at(-1)?.path ?? ''
    }
  })
}

async function findRefusal(
  transaction: SqlTransaction,
  targets: string[],
  { overwrite }: DirectoryMove,
): Promise<Outcome | undefined> {
  const faulty = targets.find((path) => findPathFault(path))
  if (faulty !== undefined) return { refused: 'invalid_target', path: faulty }
  const above = [...new Set(targets.flatMap(directoriesOf))]
  const blocked = await transaction.get<{ path: string; isTarget: number }>(sql`
    select path, 0 "isTarget" from ${name('files')} where path ${among(above)}
    union all select path, 0 from ${name('directories')} where path ${among(targets)}
    union all select path, 1 from ${name('files')} where ${overwrite ? sql`1 = 0` : sql`path ${among(targets)}`}
    limit 1`)
  if (!blocked) return undefined
  return { refused: blocked.isTarget === 1 ? 'target_exists' : 'path_conflict', path: blocked.path }
}

function directoriesOf(path: string): string[] {
  const above: string[] = []
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) above.push(at)
  return above
}
