import type { Domain } from '../dns/domain-name.ts'
import { type Delta, isSameDelta, recordsOf, type Zone } from '../dns/zone.ts'
import { changeClosed, changeNotFound, changeOutdated } from '../errors.ts'
import type { ChangeRequest, ChangeZones, Ledger, StoredChange } from '../ledger/ledger.ts'
import { evaluateProposal, evaluateWrite } from './batch/evaluate-write.ts'

interface Options {
  ledger: Ledger
  /** The zone as a write would find it now. */
  readCurrent: (domain: Domain) => Promise<Zone>
  /** Called when a change was queued. */
  onQueued: () => void
}

/** A change with the zones that it was evaluated on. */
interface KnownChange {
  change: StoredChange
  zones: ChangeZones | undefined
}

/** Writes that another person has to approve before they are sent. */
export class Approvals {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  /** Evaluates a change and stores it as a proposal; sends nothing. */
  async propose(domain: Domain, request: ChangeRequest): Promise<KnownChange> {
    const { ledger, readCurrent } = this.#options
    const known = await ledger.proposals.find(request)
    if (known !== undefined) return this.#find(known)
    const effect = evaluateWrite(request, await readCurrent(domain))
    // Preconditions are checked now: what else changes in the zone until the approval does not matter.
    const stored = { ...request, ifMatch: undefined, ifNoneMatch: undefined }
    const { change, isNew } = await ledger.accept(stored, effect)
    // Not read from the ledger: the change is stored, so a failing database must not turn it into an error.
    return isNew ? { change, zones: effect } : this.#find(change.id)
  }

  /**
   * Queues a proposed change, if it still does what was proposed.
   * @throws 409 `change_outdated` with both diffs, and the change shows the new one; 409 `change_closed` where it is not
   * proposed any more.
   */
  async approve(domain: Domain, id: number, by: string): Promise<KnownChange> {
    const { ledger, readCurrent, onQueued } = this.#options
    const request = await ledger.proposals.read(id)
    const zones = await ledger.zonesOf(id)
    if (!request || !zones) return this.#refuseClosed(id)
    const { effect, reason } = evaluateProposal(request, await readCurrent(domain))
    const { added, removed, emailType } = effect
    const approved = { added, removed, emailType }
    if (reason !== undefined || !isSameDelta(approved, zones, domain.name)) {
      if (!(await ledger.proposals.update(id, effect))) return this.#refuseClosed(id)
      const diffs = {
        proposed: describeDelta(zones, zones.after),
        changes: describeDelta(approved, effect.after),
      }
      throw changeOutdated(reason, diffs)
    }
    const approval = { by, request: { ...request, approved }, effect }
    const change = await ledger.proposals.approve(id, approval)
    if (!change) return this.#refuseClosed(id)
    onQueued()
    return { change, zones: effect }
  }

  /** @throws 409 `change_closed` where it is not proposed any more. */
  async reject(id: number, reason: string | undefined): Promise<KnownChange> {
    const { ledger } = this.#options
    const zones = await ledger.zonesOf(id)
    const change = await ledger.proposals.reject(id, reason)
    return change ? { change, zones } : this.#refuseClosed(id)
  }

  async #refuseClosed(id: number): Promise<never> {
    throw changeClosed(id, (await this.#find(id)).change.status)
  }

  async #find(id: number): Promise<KnownChange> {
    const { ledger } = this.#options
    const change = await ledger.find(id)
    if (!change) throw changeNotFound(id)
    return { change, zones: await ledger.zonesOf(id) }
  }
}

const describeDelta = (delta: Delta, { domain, rows }: Zone) => ({
  ...recordsOf(delta, domain),
  kept: rows.length - delta.added.length,
  ...(delta.emailType === undefined ? {} : { email_type: delta.emailType }),
})
