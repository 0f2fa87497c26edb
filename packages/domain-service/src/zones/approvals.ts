import type { Domain } from '../dns/domain-name.ts'
import { changesOf, isSameDelta } from '../dns/zone.ts'
import { changeNotFound, changeOutdated } from '../errors.ts'
import type { ChangeRequest, ChangeZones } from '../ledger/ledger.ts'
import { evaluateProposal, evaluateWrite } from './batch/evaluate-write.ts'
import type { ZoneDependencies } from './zone-dependencies.ts'

/** `onQueued` is called when a change was queued. */
type Options = Pick<ZoneDependencies, 'ledger' | 'readCurrent'> & { onQueued: () => void }

/** Writes that another person has to approve before they are sent. */
export class Approvals {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  /** Evaluates a change and stores it as a proposal; sends nothing. */
  async propose(domain: Domain, request: ChangeRequest) {
    const { ledger, readCurrent } = this.#options
    const known = await ledger.findByKey(request)
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
   * @throws 409 `change_outdated` with both diffs, and the change shows the new one; 409 `change_closed`.
   */
  async approve(domain: Domain, id: number, by: string) {
    const { ledger, readCurrent, onQueued } = this.#options
    const request = await ledger.proposals.read(id)
    const zones = await ledger.zonesOf(id)
    if (!zones) throw new Error(`proposal ${id} has no zones`)
    const { effect, reason } = evaluateProposal(request, await readCurrent(domain))
    const { added, removed, emailType } = effect
    const approved = { added, removed, emailType }
    const isSame = reason === undefined && isSameDelta(approved, zones)
    const approval = isSame ? { by, request: { ...request, approved } } : undefined
    const change = await ledger.proposals.update(id, effect, approval)
    if (!isSame) throw changeOutdated(reason, { proposed: describeEffect(zones), changes: describeEffect(effect) })
    onQueued()
    return { change, zones: effect }
  }

  /** @throws 409 `change_closed` */
  async reject(id: number, reason: string | undefined) {
    const { ledger } = this.#options
    const zones = await ledger.zonesOf(id)
    return { change: await ledger.proposals.reject(id, reason), zones }
  }

  async #find(id: number) {
    const { ledger } = this.#options
    const change = await ledger.find(id)
    if (!change) throw changeNotFound(id)
    return { change, zones: await ledger.zonesOf(id) }
  }
}

const describeEffect = (effect: ChangeZones) => ({
  ...changesOf(effect),
  ...(effect.emailType === undefined ? {} : { email_type: effect.emailType }),
})
