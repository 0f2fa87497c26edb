import { requireRrsetWrites } from '@domains-and-files/auth'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { HostRecord, RecordKey } from '../dns/record.ts'
import type { StoredChallenge } from '../ledger/challenge-store.ts'
import type { HostName } from './host-name.ts'
import type { IntegrationDependencies, WriteContext } from './retrying-writer.ts'

/** Maximum difference between the clocks of this process and its database. */
const maxSkewMs = 600_000

/** TXT records of ACME challenges. Those that their client forgets are swept. */
export class AcmeChallenges {
  readonly #dependencies: IntegrationDependencies

  constructor(dependencies: IntegrationDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Adds a value. Idempotent. `keep`: how many values of the caller stay, the newest; default: all. Clients of one
   * `protocol` do not know of the values of another.
   */
  async present(
    host: HostName,
    value: string,
    context: WriteContext,
    { protocol, keep }: { protocol: string; keep?: number },
  ) {
    requireRrsetWrites(context.caller, [{ name: host.name, type: 'TXT' }])
    const { challenges: store, writer, clock } = this.#dependencies
    const { caller, requestId } = context
    const challenge = {
      domain: host.domain.name,
      name: host.name,
      value,
      owner: `${protocol} ${caller.id}`,
      requestId,
      createdAt: clock.now(),
      isAdded: 0,
    }
    const outdated = keep === undefined ? [] : await this.#outdated(challenge, keep)
    const isNew = await store.add(challenge)
    await this.#sweepDomain(host.domain, value)
    const edit = { present: [toKey(challenge)], absent: outdated.map(toKey), defaultTtl: 60 }
    const { added } = await writer.write(host.domain, { kind: 'ensure', ...edit }, context)
    if (added.some((record) => isRecordOf(challenge, record))) await store.confirm(challenge)
    // The record was there before, so another author added it.
    else if (isNew) await store.remove([challenge], { unlessConfirmed: true })
    await this.#forget(outdated)
  }

  /** Removes that value only, and only if a challenge added it. Idempotent. */
  async cleanUp(host: HostName, value: string, context: WriteContext) {
    requireRrsetWrites(context.caller, [{ name: host.name, type: 'TXT' }])
    const { challenges: store, writer, zones } = this.#dependencies
    const at = { domain: host.domain.name, name: host.name }
    const challenge = (await store.list(at)).find((each) => each.value === value)
    await this.#sweepDomain(host.domain, value)
    if (!challenge) return
    // A change that is queued may be about to add it.
    if ((await this.#hasAdded(challenge)) || (await zones.hasPending(host.domain))) {
      const absent = [toKey(challenge)]
      await writer.write(host.domain, { kind: 'ensure', present: [], absent }, context)
    }
    await this.#forget([challenge])
  }

  /** Removes the challenges of all domains that are too old. */
  async sweep(): Promise<void> {
    const domains = new Set((await this.#expired()).map(({ domain }) => domain))
    for (const name of domains) {
      const domain = readDomain(name)
      if (typeof domain === 'object') await this.#sweepDomain(domain)
    }
  }

  async #outdated(challenge: StoredChallenge, keep: number): Promise<StoredChallenge[]> {
    const listed = await this.#dependencies.challenges.list(challenge)
    const others = listed.filter(({ owner, value }) => owner === challenge.owner && value !== challenge.value)
    const added = await this.#added(others)
    return added.slice(0, Math.max(0, added.length - (keep - 1)))
  }

  async #added(challenges: StoredChallenge[]): Promise<StoredChallenge[]> {
    const hasAdded = await Promise.all(challenges.map((each) => this.#hasAdded(each)))
    return challenges.filter((_, index) => hasAdded[index])
  }

  // Where the client did not wait, or the process ended, the ledger tells what became of the request.
  async #hasAdded(challenge: StoredChallenge): Promise<boolean> {
    if (challenge.isAdded) return true
    const { domain, createdAt, requestId } = challenge
    const filter = { domain, since: new Date(createdAt - maxSkewMs), status: 'confirmed', requestId } as const
    const { changes } = await this.#dependencies.ledger.list(filter, { page: 1, page_size: 100 })
    return changes.some(({ summary }) => summary?.added.some((record) => isRecordOf(challenge, record)))
  }

  // Queued before the client's write, it joins the same batch. Resolves once it is queued.
  async #sweepDomain(domain: Domain, except?: string) {
    const { zones, log } = this.#dependencies
    const expired = (await this.#expired()).filter((each) => each.domain === domain.name && each.value !== except)
    if (expired.length === 0) return
    const own = await this.#added(expired)
    // A change that is still queued may add a record later: the next sweep looks again.
    if (own.length < expired.length && !(await zones.hasPending(domain)))
      await this.#forget(expired.filter((each) => !own.includes(each)))
    if (own.length === 0) return
    zones.queue
      .write(domain, {
        domain: domain.name,
        edit: { kind: 'ensure', present: [], absent: own.map(toKey) },
        force: false,
        by: 'domain-service',
        requestId: 'acme-sweep',
      })
      .then(() => this.#forget(own))
      .catch((error: unknown) => log.warn({ err: error, domain: domain.name }, 'old ACME challenges not removed'))
  }

  // A failure is harmless: the records are gone, and a row that stays costs one more sweep.
  async #forget(challenges: StoredChallenge[]) {
    const { challenges: store, log } = this.#dependencies
    await store.remove(challenges).catch((err) => log.warn({ err }, 'removed ACME challenges not forgotten'))
  }

  #expired(): Promise<StoredChallenge[]> {
    const { challenges, clock, config } = this.#dependencies
    return challenges.before(clock.now() - config.acmeMaxAge * 1000)
  }
}

const toKey = ({ name, value }: StoredChallenge): RecordKey => ({ name, type: 'TXT', address: value })

const isRecordOf = ({ name, value }: StoredChallenge, record: HostRecord) =>
  record.name === name && record.type === 'TXT' && record.address === value
