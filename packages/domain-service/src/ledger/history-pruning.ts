import type { Clock, Logger } from '@domains-and-files/http'
import { BackgroundTask, name, now, type Sql, sql } from '@domains-and-files/persistence'
import { isOpen } from './change-history.ts'
import { cancelAll } from './changes.ts'
import { unusedMs } from './zone-snapshots.ts'

interface Options {
  sql: Sql
  clock: Clock
  log: Logger
  /** Changes that ended longer ago are deleted; 0: none. */
  days: number
}

export const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** How long a proposed change waits for an approval. */
const proposedMs = 14 * dayMs

const changes = name('changes')
const sends = name('sends')

/** Cancels proposals that have expired, and deletes old changes in the first run of each day. */
export function pruneHistory({ sql: database, clock, log, days }: Options): BackgroundTask {
  let prunedAt = -Infinity
  const run = async () => {
    await expireProposals(database)
    if (days === 0 || clock.now() - prunedAt < dayMs) return
    prunedAt = clock.now()
    await deleteHistory(database, new Date(Date.now() - days * dayMs))
  }
  return new BackgroundTask({ run, clock, onError: (error) => log.error({ err: error }, 'history not pruned') })
}

/** Cancels proposals that were not approved within 14 days. */
export async function expireProposals(database: Sql): Promise<void> {
  const isExpired = sql`status = 'proposed' and is_async = 1 and created_at <= ${now} - ${proposedMs}`
  await cancelAll(database, isExpired, 'expired')
}

/** Deletes changes that ended before this moment, their sends, and zones that nothing refers to. @returns how many changes. */
export function deleteHistory(database: Sql, before: Date): Promise<number> {
  return database.transaction(async (transaction) => {
    const pruned = await transaction.run(sql`delete from ${changes} where ended_at < ${before.getTime()}`)
    await transaction.run(sql`delete from ${sends}
      where started_at < ${before.getTime()} and not (${isOpen})
        and not exists (select 1 from ${changes} where send_id = sends.id)`)
    await transaction.run(sql`delete from ${name('zones')} where used_at < ${now} - ${unusedMs} and digest not in (
      select before from ${changes} where before is not null
      union select after from ${changes} where after is not null
      union select base from ${sends} union select zone from ${sends}
      union select found from ${sends} where found is not null
      union select zone from ${name('known_zones')})`)
    return pruned
  })
}
