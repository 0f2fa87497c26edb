import { appendEvents } from '@domains-and-files/events'
import { forUpdate, name, type Sql, sql } from '@domains-and-files/persistence'

export const registrarEvents = ['registrar.failing', 'registrar.recovered'] as const

/**
 * Records that calls to the registrar pause after failures, or succeed again, unless that is what the last such event says:
 * each replica has a circuit breaker.
 */
export async function recordRegistrarEvent(
  database: Sql,
  { registrar, isFailing }: { registrar: string; isFailing: boolean },
): Promise<void> {
  const [failing, recovered] = registrarEvents
  await database.transaction(async (transaction) => {
    await transaction.get(sql`select last from ${name('event_sequence')} ${forUpdate}`)
    const last = await transaction.get<{ type: string }>(sql`select type from ${name('events')}
      where type in (${failing}, ${recovered}) order by id desc limit 1`)
    const type = isFailing ? failing : recovered
    if ((last?.type ?? recovered) !== type)
      await appendEvents(transaction, [{ type, data: { registrar } }])
  })
}
