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
    const pending: QueuedChange[] = await isolate(latest, steps)
    latest = pending.length > 0 ? await steps.attempt(pending) : 'done'
  }
}

/** @returns the writes that are still to be sent. */
async function isolate(refusal: Refusal, steps: Steps): Promise<QueuedChange[]> {
  // The refused send that differs from the zone by the suspects alone.
  let latest: Refusal | undefined = refusal
  let suspects = refusal.writes
  let cleared: QueuedChange[] = []
  while (suspects.length > 1) {
    if (latest && latest.named.length > 0) return [...(await refuseNamed(latest, steps)), ...cleared]
    const middle = Math.ceil(suspects.length / 2)
    const [first, second] = [suspects.slice(0, middle), suspects.slice(middle)]
    const attempt = await steps.attempt(first)
    if (typeof attempt === 'object') {
      cleared = [...second, ...cleared]
      latest = attempt
      suspects = attempt.writes
    } else {
      // The second half would give the refused zone again, so it is not sent as a whole.
      suspects = second
      if (attempt === 'failed') latest = undefined
    }
  }
  const [last] = suspects
  if (last) {
    const own = latest ?? (await steps.attempt([last]))
    if (typeof own === 'object') await steps.refuse(last, own)
  }
  return cleared
}

async function refuseNamed(refusal: Refusal, steps: Steps): Promise<QueuedChange[]> {
  for (const write of refusal.named) await steps.refuse(write, refusal)
  return refusal.writes.filter((write) => !refusal.named.includes(write))
}
