import type { HttpError } from '@domains-and-files/http'
import type { Zone } from '../../dns/record.ts'
import type { QueuedWrite } from '../zone-write.ts'

/** Writes that the registrar refused together, for what they contain. Nothing of them is done. */
export interface Refusal {
  writes: QueuedWrite[]
  /** The writes whose records the registrar named. */
  named: QueuedWrite[]
  error: HttpError
  /** The zone as it was and is. */
  zone: Zone
}

interface Steps {
  /** Sends writes together and settles them, unless the registrar refuses what they contain. */
  attempt: (writes: QueuedWrite[]) => Promise<Refusal | undefined>
  refuse: (write: QueuedWrite, refusal: Refusal) => Promise<void>
}

/**
 * Settles writes that the registrar refused together in as few calls as possible: those that it names are left out and
 * the others sent again. Where it names none, halves are tried: each costs a send and a read, so that one bad write among
 * a hundred is found within 21 calls. The order of the writes is kept.
 */
export async function separate(refusal: Refusal, steps: Steps): Promise<void> {
  for (let latest: Refusal | undefined = refusal; latest; ) {
    const pending: QueuedWrite[] = await isolate(latest, steps)
    latest = pending.length > 0 ? await steps.attempt(pending) : undefined
  }
}

/** @returns the writes that are still to be sent. */
async function isolate(refusal: Refusal, steps: Steps): Promise<QueuedWrite[]> {
  let latest: Refusal | undefined = refusal
  let suspects = refusal.writes
  let cleared: QueuedWrite[] = []
  while (suspects.length > 1) {
    if (latest && latest.named.length > 0) {
      const rest = await refuseNamed(latest, steps)
      return [...rest, ...cleared]
    }
    const middle = Math.ceil(suspects.length / 2)
    const [first, second] = [suspects.slice(0, middle), suspects.slice(middle)]
    latest = await steps.attempt(first)
    if (latest) {
      cleared = [...second, ...cleared]
      suspects = latest.writes
    } else {
      // One of the second half must be to blame, so it is not sent as a whole again.
      suspects = second
    }
  }
  const [last] = suspects
  if (last) {
    const own = latest ?? (await steps.attempt([last]))
    if (own) await steps.refuse(last, own)
  }
  return cleared
}

async function refuseNamed(refusal: Refusal, steps: Steps): Promise<QueuedWrite[]> {
  for (const write of refusal.named) await steps.refuse(write, refusal)
  return refusal.writes.filter((write) => !refusal.named.includes(write))
}
