import { HttpError, type Logger } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import { isParking, subtract, toRecord, type Zone } from '../dns/record.ts'
import { writeNotConfirmed } from '../errors.ts'
import { CallFailed } from '../registrar/call-failed.ts'
import type { RegistrarClient } from '../registrar/client.ts'

/**
 * What a write came to. `written`: the zone is as was sent. `refused`: the registrar judged it and did nothing.
 * `differs`: it came back otherwise. `unknown`: nobody can say.
 */
export type WriteOutcome =
  | { kind: 'written'; zone: Zone }
  | { kind: 'refused'; error: HttpError }
  | { kind: 'differs'; error: HttpError; zone: Zone }
  | { kind: 'unknown'; error: HttpError }

interface Write {
  registrar: RegistrarClient
  domain: Domain
  before: Zone
  after: Zone
  verify: boolean
  log: Logger
  /** Told when a write was given up that was not done by then, but may be later. */
  onGivenUp: () => void
}

const busyTries = 3

/**
 * Sends a zone and finds out what became of it. An answer that is lost or broken is resolved by reading: is the new
 * set there, it is written; is the old one, it is sent once more; else it is not confirmed.
 */
export async function writeVerified(write: Write): Promise<WriteOutcome> {
  for (const isLast of [false, true]) {
    const failure = await send(write)
    const isOpen = failure?.kind === 'unknown' || failure?.kind === 'doubtful'
    if (failure && !isOpen) return { kind: 'refused', error: failure.error }
    if (!failure && !write.verify) return { kind: 'written', zone: write.after }

    const outcome = await readBack(write, failure)
    if (failure?.kind === 'unknown' && (outcome === 'unchanged' || outcome.kind !== 'written')) {
      write.onGivenUp()
    }
    if (outcome !== 'unchanged') return outcome
    if (failure?.kind === 'doubtful') return { kind: 'refused', error: failure.error }
    if (isLast) break
    write.log.warn({ domain: write.domain.name, code: failure?.error.code }, 'write sent once more')
  }
  const detail =
    'The registrar did not take the change, which was sent twice: the zone is as it was'
  return { kind: 'unknown', error: writeNotConfirmed(detail) }
}

async function send({ registrar, domain, after }: Write): Promise<CallFailed | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      await registrar.replaceZone(domain, after)
      return undefined
    } catch (error) {
      // The call was not even made: the budget's failure, or the breaker's.
      if (error instanceof HttpError) return new CallFailed('refused', error)
      if (!(error instanceof CallFailed)) throw error
      if (error.kind !== 'busy' || attempt === busyTries) return error
    }
  }
}

async function readBack(
  write: Write,
  failure: CallFailed | undefined,
): Promise<WriteOutcome | 'unchanged'> {
  const { registrar, domain, before, after } = write
  let zone: Zone
  try {
    zone = await registrar.zone(domain, 'write')
  } catch (cause) {
    const detail =
      'The change was sent, but the zone could not be read back: read it before you try again'
    return { kind: 'unknown', error: writeNotConfirmed(detail, cause) }
  }
  if (isSame(zone, after)) return { kind: 'written', zone }
  if (failure && isSame(zone, before)) return 'unchanged'
  return { kind: 'differs', zone, error: writeNotConfirmed(tellDifference(zone, after)) }
}

/** Whether a zone is as it was meant to be, modulo what the registrar is known to change. */
export function isSame(found: Zone, wanted: Zone): boolean {
  const { domain } = wanted
  // Into an empty zone the registrar puts its parking rows.
  const rows =
    wanted.rows.length === 0 ? found.rows.filter((row) => !isParking(row, domain)) : found.rows
  return (
    rows.length === wanted.rows.length &&
    subtract(rows, wanted.rows, domain).length === 0 &&
    (found.emailType ?? 'NONE') === (wanted.emailType ?? 'NONE')
  )
}

function tellDifference(found: Zone, wanted: Zone): string {
  const { domain } = wanted
  const tell = (rows: Zone['rows']) =>
    rows
      .slice(0, 5)
      .map((row) => toRecord(row, domain))
      .map(({ name, type, address, ttl }) => `${name} ${type} ${address.slice(0, 80)} (ttl ${ttl})`)
      .join('; ')
  const missing = tell(subtract(wanted.rows, found.rows, domain))
  const unexpected = tell(subtract(found.rows, wanted.rows, domain))
  return [
    'The registrar took the change, but the zone came back otherwise than it was sent',
    missing && `missing: ${missing}`,
    unexpected && `unexpected: ${unexpected}`,
    found.emailType !== wanted.emailType &&
      `email type ${found.emailType} instead of ${wanted.emailType}`,
  ]
    .filter(Boolean)
    .join('. ')
}
