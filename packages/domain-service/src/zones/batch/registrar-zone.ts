import { type Clock, HttpError } from '@domains-and-files/http'
import type { Reservation } from '../../budget/call-queue.ts'
import type { ReserveOptions } from '../../budget/call-quota.ts'
import type { Priority } from '../../budget/call-windows.ts'
import type { Domain } from '../../dns/domain-name.ts'
import { differenceOf, isEmptyDelta, type Zone } from '../../dns/zone.ts'
import { registrarBusy, writeNotConfirmed, zoneKeepsChanging } from '../../errors.ts'
import type { DomainSends, SendOutcome } from '../../ledger/ledger.ts'
import { CallFailed } from '../../registrar/call-failed.ts'
import type { ZoneDependencies } from '../zone-dependencies.ts'
import { describeDifference, isSame, readCurrent, readUntilCurrent } from './current-zone.ts'

/**
 * How a write ended, as the ledger records it. `refused`: `rows` are the indexes of the rows that the registrar names,
 * `shown` is the zone before if it is still shown. `unsent`: nothing was done (`retry`: evaluate the writes again, on this
 * zone or on a read). `closed`: another zone was read back. `unknown`: not known yet.
 */
export type WriteOutcome = Pick<SendOutcome, 'unanswered'> & Ending

type Ending =
  | { state: 'settled' | 'unverified'; found: Zone; error?: undefined }
  | { state: 'refused'; error: HttpError; rows: readonly number[]; shown: Zone | undefined }
  | ({ state: 'unsent' } & Unsent)
  | { state: 'closed'; error: HttpError; found: Zone }
  | { state: 'unknown'; error: HttpError; found?: Zone }

interface Unsent {
  error: HttpError
  retry?: { zone?: Zone | undefined } | undefined
}

interface Write {
  before: Zone
  after: Zone
  sends: Pick<DomainSends, 'recent' | 'late'>
}

type Options = ZoneDependencies & { domain: Domain }

// Maximum age of a read that a write is based on: the write undoes what other tools have written since. Under a second
// from the first byte of the read's request to that of the write's, with a margin for the resolution of clocks.
const maxReadAgeMs = 980
const staleTries = 3
const maxReads = 3

/** A zone at the registrar in one batch: its reads and writes, with the slots reserved for these calls. */
export class RegistrarZone implements Disposable {
  readonly #options: Options
  readonly clock: Clock
  #slot: Priority | Reservation = 'follow-up'
  #readAt = -Infinity
  #hasSent = false
  #readBacks: [zone: Zone, readAt: number][] = []

  constructor(options: Options) {
    this.#options = options
    this.clock = options.clock
  }

  /** Holds slots for `calls` further calls, by default ahead of other priorities, so that none of these calls waits. */
  async ensure(calls: number, wanted: ReserveOptions = { priority: 'follow-up' }): Promise<void> {
    const { quota } = this.#options.registrar
    const held = typeof this.#slot === 'object' ? this.#slot : undefined
    if (held && held.slots >= calls) return
    if (held) quota.release(held)
    this.#slot = await quota.reserve(calls, wanted)
  }

  /** Who has the slots, or was told to come back for them. */
  get callers(): readonly string[] {
    return typeof this.#slot === 'object' ? this.#slot.callers : []
  }

  get isFresh(): boolean {
    return this.clock.now() - this.#readAt <= maxReadAgeMs
  }

  async read(): Promise<Zone> {
    const { registrar, domain } = this.#options
    return registrar.zone(domain, this.#slot, (zone, readAt) => {
      this.#readAt = readAt
      if (this.#hasSent) this.#readBacks.push([zone, readAt])
      else registrar.onZone(zone, readAt)
    })
  }

  // Compared late: changes made outside can be told from our own send only once its outcome is recorded.
  #compareReadBacks() {
    for (const [zone, readAt] of this.#readBacks.splice(0)) this.#options.registrar.onZone(zone, readAt)
  }

  /** The email type by getInfo; undefined where that does not say. */
  emailType(): Promise<string | undefined> {
    const { registrar, domain } = this.#options
    return registrar.emailType(domain, this.#slot)
  }

  [Symbol.dispose]() {
    this.#compareReadBacks()
    if (typeof this.#slot === 'object') this.#options.registrar.quota.release(this.#slot)
  }

  /**
   * Replaces the zone and finds out what became of it. A lost or broken answer is resolved by reading: the new zone there
   * means written; the old one means that it is sent once more; any other is not confirmed. Refusals are checked, too.
   */
  async write(write: Write): Promise<WriteOutcome> {
    const { before, after } = write
    for (let unanswered = 0; ; ) {
      const sent = await this.#send(write)
      if ('error' in sent) return endUnsent(sent, { ...write, unanswered })
      const { failure } = sent
      if (!failure && !this.#options.verify) return { state: 'settled', found: after, unanswered }
      if (failure && isRefusal(failure)) {
        const outcome = await this.#examineRefusal(write, failure)
        if (failure.kind !== 'busy' || outcome.state !== 'refused') return { ...outcome, unanswered }
        const retry = unanswered === 0 ? { zone: outcome.shown } : {}
        return endUnsent({ error: failure, retry }, { ...write, unanswered })
      }

      const mayResend = failure?.kind === 'unknown' && unanswered === 0
      const outcome = await this.#readBack(write, { failure, mayResend })
      const isDone = outcome !== 'unchanged' && outcome.error === undefined
      if (failure?.kind === 'unknown' && !isDone) unanswered += 1
      if (outcome !== 'unchanged') return { ...outcome, unanswered }
      if (failure?.kind === 'doubtful') return { state: 'refused', error: failure, rows: [], shown: before, unanswered }
      if (!mayResend) {
        const error = writeNotConfirmed(describeDifference(before, after))
        return { state: 'unknown', error, found: before, unanswered }
      }
      this.#options.log.warn({ domain: before.domain, code: failure?.code }, 'resending write')
    }
  }

  async #send(write: Write): Promise<Unsent | { failure: CallFailed | undefined }> {
    const { registrar, domain, replicas, timeoutMs } = this.#options
    for (let attempt = 1; ; attempt++) {
      let [isSending, isStale] = [false, false]
      try {
        await this.ensure(2)
        const zone = this.isFresh ? undefined : await this.#readAgain(write)
        if (zone) return { error: zoneKeepsChanging(), retry: { zone } }
        isSending = true
        this.#compareReadBacks()
        await registrar.replaceZone(domain, write.after, this.#slot, () => {
          isStale = !this.isFresh
          if (isStale) throw registrarBusy(10, 'The registrar answers so slowly that its zones are outdated at once')
          // The call must end, or time out, before another replica can acquire the lease.
          replicas?.leases.require(domain.name, timeoutMs)
          this.#hasSent = true
        })
        return { failure: undefined }
      } catch (error) {
        // Read and sent at once: on a slow machine or database another round of the batch would take longer.
        if (isStale && attempt < staleTries) continue
        if (!(error instanceof HttpError)) throw error
        if (isSending && error instanceof CallFailed) return { failure: error }
        // The call was not made: no slot came free, the circuit is open, or the zone could not be read.
        return { error }
      }
    }
  }

  /** @returns the zone if it is not the one that the write is based on. */
  async #readAgain(write: Write): Promise<Zone | undefined> {
    const { before, sends } = write
    await this.ensure(3)
    // Stands for no send, or one without an answer: the zone may well be as it was.
    const base = { base: before, zone: before, isDone: true }
    const zone = await readCurrent(this, { ...sends, recent: [base, ...sends.recent] })
    return isBase(zone, write) ? undefined : zone
  }

  // The registrar has carried out writes that it reported as refused, or as too many.
  async #examineRefusal(write: Write, failure: CallFailed): Promise<Ending> {
    const { before, after } = write
    const refused = { state: 'refused' as const, error: failure, rows: failure.rowIndexes }
    try {
      const zone = await this.read()
      if (isSame(zone, after) && !isSame(zone, before)) return written(zone, after)
      return { ...refused, shown: isBase(zone, write) ? before : undefined }
    } catch (cause) {
      if (cause instanceof CallFailed && isRefusal(cause)) return { ...refused, shown: undefined }
      return notReadBack(write, { failure, cause })
    }
  }

  async #readBack(
    write: Write,
    { failure, mayResend }: { failure: CallFailed | undefined; mayResend: boolean },
  ): Promise<Ending | 'unchanged'> {
    const { before, after, sends } = write
    const recent = [{ base: before, zone: after, isDone: !failure }, ...sends.recent]
    const isBefore = (zone: Zone) => isSame(zone, before)
    try {
      const { last } = await readUntilCurrent({ reader: this, recent, maxReads }, mayResend ? isBefore : undefined)
      const { zone, age, isRepeated } = last
      if (age === 0) return written(zone, after)
      // Both, where one write of the batch undoes another: then it is sent once more.
      if (mayResend && isRepeated && isBefore(zone)) return 'unchanged'
      if (isSame(zone, after)) return written(zone, after)
      if (failure && isBefore(zone)) return 'unchanged'
      const error = writeNotConfirmed(describeDifference(zone, after))
      // Accepted, and perhaps still to be shown: a later read resolves it.
      return { state: age > 0 ? 'unknown' : 'closed', found: zone, error }
    } catch (cause) {
      return notReadBack(write, { failure, cause })
    }
  }
}

/** Whether the registrar says that it did nothing. */
const isRefusal = ({ kind }: CallFailed) => kind === 'refused' || kind === 'busy' || kind === 'auth'

// A send that never left changes nothing, unless one before it got no answer: that may still be carried out.
function endUnsent({ error, retry }: Unsent, { unanswered, after }: Write & { unanswered: number }): WriteOutcome {
  if (unanswered === 0) return { state: 'unsent', error, retry, unanswered }
  const { zone } = retry ?? {}
  if (zone && isSame(zone, after)) return { ...written(zone, after), unanswered: 0 }
  const detail = 'The registrar did not answer, and the change could not be sent again: read the zone'
  return { state: 'unknown', error: writeNotConfirmed(detail, error), unanswered }
}

/** Whether this is the zone that the write is based on. Parking records are a difference: the write would remove them. */
const isBase = (zone: Zone, { before }: Write) => zone.usesRegistrarDns && isEmptyDelta(differenceOf(before, zone))

const written = (zone: Zone, after: Zone) => ({
  state: 'settled' as const,
  found: zone.emailType === undefined ? { ...zone, emailType: after.emailType } : zone,
})

function notReadBack(
  { after }: Write,
  { failure, cause }: { failure: CallFailed | undefined; cause: unknown },
): Ending {
  if (!failure) return { state: 'unverified', found: after }
  const detail = 'The change was sent, but the zone could not be read back: read it before you try again'
  return { state: 'unknown', error: writeNotConfirmed(detail, cause) }
}
