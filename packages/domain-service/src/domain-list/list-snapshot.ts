import type { DomainEntry } from '../registrar/responses.ts'
import { type SortKey, sortDomains } from './domain-query.ts'
import type { ListPass } from './list-store.ts'

/** The account's domains as one complete reading found them. */
export class ListSnapshot {
  readonly domains: readonly DomainEntry[]
  readonly names: ReadonlySet<string>
  readonly startedAt: number
  readonly #sorted = new Map<SortKey, readonly DomainEntry[]>()

  constructor(pass: ListPass) {
    // A domain added between two pages moves another one to a second page.
    const byName = new Map(pass.pages.flat().map((domain) => [domain.name, domain]))
    this.domains = [...byName.values()]
    this.names = new Set(byName.keys())
    this.startedAt = pass.startedAt
  }

  sorted(sortBy: SortKey): readonly DomainEntry[] {
    const sorted = this.#sorted.get(sortBy) ?? sortDomains(this.domains, sortBy)
    this.#sorted.set(sortBy, sorted)
    return sorted
  }
}
