import type { HttpError } from '@domains-and-files/http'
import type { Zone } from '../../dns/zone.ts'
import type { QueuedChange } from '../../ledger/ledger.ts'

/** Writes that the registrar refused together, for their content. None of them is done. */
export interface Refusal {
  writes: QueuedChange[]
  /** The writes whose records the registrar named. */
  named: QueuedChange[]
  error: HttpError
  /** The zone as it was and is. */
  zone: Zone
}

/** The outcome of writes that were sent together: `done` where the zone has them now. */
export type Attempt = Refusal | 'done' | 'failed'

/** Whether the registrar refused what was sent, so that other writes of the batch may pass without it. */
export const isAboutContent = (error: HttpError) => ['registrar_rejected', 'too_many_records'].includes(error.code)

interface Steps {
  /** Sends writes together and settles them, unless the registrar refuses what they contain. */
  attempt: (writes: QueuedChange[]) => Promise<Attempt>
  refuse: (write: QueuedChange, refusal: Refusal) => Promise<unknown>
}

/**
 * Settles writes that the registrar refused together in as few calls as possible: those that it names are left out and
 * the others sent again. Where it names none, halves are tried: each costs a send and a read, so that one bad write among
 * a hundred is found within 19 calls. The order of the writes is kept.
 */
export async function separate(refusal: Refusal, steps: Steps): Promise<void> {
  for (let latest: Attempt = refusal; typeof latest === 'object'; ) {
    const pending: QueuedChange[] = await isolate(latest.writes, latest, steps)
    latest = pending.length > 0 ? await steps.attempt(pending) : 'done'
  }
}

/**
 * Finds a bad write. `refusal`: of a send that differs from the zone by these suspects alone.
 * @returns the writes that are still to be sent.
 */
async function isolate(suspects: QueuedChange[], refusal: Refusal | undefined, steps: Steps): Promise<QueuedChange[]> {
  const { named = [] } = refusal ?? {}
  if (refusal && named.length > 0) {
    for (const write of named) await steps.refuse(write, refusal)
    return suspects.filter((write) => !named.includes(write))
  }
  const [one] = suspects
  if (one && suspects.length === 1) {
    const own = refusal ?? (await steps.attempt(suspects))
    if (typeof own === 'object') await steps.refuse(one, own)
    return []
  }
  const middle = Math.ceil(suspects.length / 2)
  const second = suspects.slice(middle)
  const attempt = await steps.attempt(suspects.slice(0, middle))
  if (typeof attempt === 'object') return [...(await isolate(attempt.writes, attempt, steps)), ...second]
  // The second half would give the refused zone again, so it is not sent as a whole.
  return isolate(second, attempt === 'failed' ? undefined : refusal, steps)
}
