import { HttpError } from '@domains-and-files/http'
import type { BackgroundTask } from '@domains-and-files/persistence'
import type { Domain } from '../dns/domain-name.ts'
import { parseRow, type Row } from '../dns/record.ts'
import { changesOf, type Zone } from '../dns/zone.ts'
import { changeOutdated } from '../errors.ts'
import type { ChangeRequest, ChangeZones } from '../ledger/ledger.ts'
import { type Cached, ResponseCache } from '../registrar/response-cache.ts'
import { readCurrent } from './batch/current-zone.ts'
import {
  approvalOf,
  checkRights,
  evaluateProposal,
  evaluateWrite,
  isApproved,
  isChange,
  type WriteResult,
} from './batch/evaluate-write.ts'
import { WriteQueue } from './write-queue.ts'
import type { ZoneDependencies } from './zone-dependencies.ts'
import { checkZones, type RecordPattern } from './zone-watch.ts'

interface Options extends Omit<ZoneDependencies, 'cache' | 'counts'> {
  cacheTtlMs: number
  /** Records whose changes made outside are ignored. */
  driftIgnore: RecordPattern[]
}

/** The zones of all domains: cached reads, and writes that lose nothing. */
export class ZoneWriter {
  readonly #options: Options
  readonly #cache: ResponseCache<Zone>
  readonly queue: WriteQueue
  readonly #checks: BackgroundTask
  /** Resolves when all zones that were read are compared with the known ones. */
  #comparing = Promise.resolve()
  readonly found = { lateWrites: 0, outsideChanges: 0 }

  constructor(options: Options) {
    const { registrar, ledger, cacheTtlMs, replicas } = options
    this.#options = options
    // In the background, in the order of the reads.
    registrar.onZone = (zone, readAt) => {
      this.#comparing = this.#comparing.then(() => this.#compare(zone, readAt))
    }
    const versionOf = replicas ? (domain: string) => ledger.zoneVersion(domain) : undefined
    this.#cache = new ResponseCache({ ...registrar.cacheOptions(cacheTtlMs), versionOf })
    const dependencies = { ...options, cache: this.#cache, counts: this.found }
    this.queue = new WriteQueue(dependencies)
    this.#checks = checkZones({ ...dependencies, queue: this.queue })
  }

  /**
   * Resolves what ended processes left open, in the background; each domain's next batch does so, too. Among replicas,
   * one calls this from time to time.
   */
  async start(): Promise<void> {
    const { ledger, log } = this.#options
    await ledger.recover().catch((err) => log.error({ err }, 'interrupted changes not recovered'))
    await this.#checks.start(this.#options.timeoutMs)
    await this.queue.start()
  }

  /** A zone at most `cacheTtlMs` old, or read now where `fresh`. `by`: the caller, if it retries after its Retry-After. */
  read(domain: Domain, by?: string, fresh = false): Promise<Cached<Zone>> {
    return this.#cache.read(domain.name, () => this.#load(domain, by), fresh)
  }

  /** The zone, or the one that the ledger knows where no call is left for a read: for clients that do not wait. */
  async readOrKnown(domain: Domain, by: string): Promise<Zone> {
    try {
      return (await this.read(domain)).value
    } catch (error) {
      if (!(error instanceof HttpError && error.code === 'registrar_busy')) throw error
      return (await this.#options.ledger.knownZones.find(domain.name)) ?? (await this.read(domain, by)).value
    }
  }

  // Waits for the comparison: a client that reads the history next finds the changes that this read has shown.
  async #load(domain: Domain, by?: string): Promise<Zone> {
    // Readers of one zone share its load, and so the place of that in the queue.
    const zone = await this.#options.registrar.zone(domain, { priority: 'read', callers: by ? [by, domain.name] : [] })
    await this.#comparing
    return zone
  }

  /** Records what was changed outside. */
  async #compare(zone: Zone, readAt: number): Promise<void> {
    const { ledger, clock, log, driftIgnore } = this.#options
    const { domain } = zone
    const isIgnored = (row: Row) => driftIgnore.some((matches) => matches(domain, parseRow(row).record.name, row.type))
    if (!zone.usesRegistrarDns) return
    try {
      const ageMs = clock.now() - readAt
      const change = await ledger.knownZones.compare(zone, { ageMs, isIgnored })
      if (change === undefined) return
      this.found.outsideChanges++
      log.warn({ domain, change }, 'zone changed outside')
    } catch (error) {
      log.warn({ err: error, domain }, 'zone not compared with the last known one')
    }
  }

  /** What a change would do; only reads. */
  async preview(domain: Domain, request: ChangeRequest): Promise<WriteResult> {
    const effect = evaluateWrite(request, await this.#readCurrent(domain, request.callerId ?? request.by))
    return { ...effect, zone: effect.after, verified: true }
  }

  /** Stores a change as a proposal, for another person to approve, unless it changes nothing; sends nothing. */
  async propose(domain: Domain, request: ChangeRequest) {
    const { ledger } = this.#options
    const known = await ledger.findByKey(request)
    if (known) return { change: known, zones: await ledger.zonesOf(known.id) }
    const effect = await this.preview(domain, request)
    if (!isChange(effect)) return effect
    // Preconditions are checked now: what else changes in the zone until the approval does not matter.
    const stored = { ...request, ifMatch: undefined, ifNoneMatch: undefined }
    const { change, isNew } = await ledger.accept(stored, effect)
    // Not read from the ledger: the change is stored, so a failing database must not turn it into an error.
    return { change, zones: isNew ? effect : await ledger.zonesOf(change.id) }
  }

  /**
   * Queues a proposed change, if it still does what was proposed.
   * @throws 409 `change_outdated` with both diffs, and the change shows the new one; 409 `change_closed`; 403 where its
   * author may not write any more.
   */
  async approve(domain: Domain, id: number, by: string) {
    const { ledger, findCaller } = this.#options
    const request = await ledger.findProposal(id)
    const zones = await ledger.zonesOf(id)
    if (!zones) throw new Error(`proposal ${id} has no zones`)
    const proposed = approvalOf(zones)
    await checkRights({ ...request, approved: proposed }, findCaller)
    const { effect, reason } = evaluateProposal(request, await this.#readCurrent(domain, by))
    const isSame = reason === undefined && isApproved(effect, proposed)
    const approval = isSame ? { by, request: { ...request, approved: proposed } } : undefined
    const change = await ledger.updateProposal(id, effect, approval)
    if (!isSame) throw changeOutdated(reason, { proposed: describeEffect(zones), changes: describeEffect(effect) })
    this.queue.startQueued()
    return { change, zones: effect }
  }

  /** The zone as a write would find it now. */
  async #readCurrent(domain: Domain, by: string): Promise<Zone> {
    const { registrar, ledger, clock } = this.#options
    const read = () => this.#load(domain, by)
    // An answer may be outdated, so the zone is read like the base of a write.
    const load = async () => readCurrent({ read, clock }, { ...(await ledger.sendsOf(domain.name)), late: [] })
    const { value: zone } = await this.#cache.read(domain.name, load, true)
    const slot = { priority: 'read', callers: [by] } as const
    const emailType = zone.emailType ?? (await registrar.emailType(domain, slot).catch(() => undefined))
    return { ...zone, emailType }
  }

  /** Whether a write of this domain is queued or under way, so that a cached zone may be about to change. */
  async hasPending(domain: Domain): Promise<boolean> {
    return this.queue.isBusy(domain) || (await this.#options.ledger.hasPending(domain.name))
  }

  /** Hits and misses of the zone cache. */
  get counts() {
    return this.#cache.counts
  }

  /** Resolves when no batch runs any more. Asynchronous changes stay in the ledger. */
  async settle(): Promise<void> {
    await this.#checks.close()
    await this.queue.close()
    await this.#comparing
  }
}

const describeEffect = (effect: ChangeZones) => {
  const { emailTypeBefore, emailType } = approvalOf(effect)
  return { ...changesOf(effect), email_type_before: emailTypeBefore, email_type: emailType }
}
