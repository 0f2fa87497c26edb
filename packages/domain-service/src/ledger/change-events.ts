import { appendEvents, type StoredEvent } from '@domains-and-files/events'
import { list, name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { type ChangeStatus, outsideReason, type StoredChange } from './change.ts'
import { type ChangeRow, listedColumns, toStoredChange } from './stored-change.ts'

/** Types of events about a change; their data is the row of the change. */
export const changeEvents = [
  'zone.changed',
  'zone.changed_outside',
  'change.proposed',
  'change.refused',
  'change.unconfirmed',
] as const

type ChangeEvent = (typeof changeEvents)[number]

/**
 * Records an event for each of these changes whose status is not the one that it had `before`, if there is one for it. Call
 * it as the last of a transaction.
 */
export async function appendChangeEvents(
  transaction: SqlTransaction,
  ids: number[],
  before = new Map<number, ChangeStatus>(),
): Promise<void> {
  const rows = await readChanges(transaction, ids)
  const added = rows.flatMap((row) => {
    const type = before.get(row.id) === row.status ? undefined : typeOf(toStoredChange(row))
    return type ? [{ type, by: row.by || undefined, requestId: row.request_id, data: row }] : []
  })
  await appendEvents(transaction, added)
}

/** The status of each change, for `appendChangeEvents` after an update of them. */
export const statusesOf = async (transaction: SqlTransaction, ids: number[]) =>
  new Map((await readChanges(transaction, ids)).map(({ id, status }) => [id, status]))

/** The change that an event is about, as it was then. */
export const changeOf = ({ data }: StoredEvent) => toStoredChange(data as ChangeRow) // As `appendChangeEvents` stored it.

function typeOf({
  status,
  reason,
  summary,
  emailTypeBefore,
  emailTypeAfter,
}: StoredChange): ChangeEvent | undefined {
  if (status === 'proposed') return 'change.proposed'
  if (status === 'refused') return 'change.refused'
  if (status === 'unconfirmed') return 'change.unconfirmed'
  const isChanged =
    summary !== undefined &&
    (summary.added.length > 0 ||
      summary.removed.length > 0 ||
      summary.omitted !== undefined ||
      emailTypeBefore !== emailTypeAfter)
  if (status !== 'confirmed' || !isChanged) return undefined
  return reason === outsideReason ? 'zone.changed_outside' : 'zone.changed'
}

const readChanges = (transaction: SqlTransaction, ids: number[]) =>
  transaction.all<ChangeRow>(
    sql`select ${listedColumns} from ${name('changes')} where id in (${list(ids)}) order by id`,
  )
