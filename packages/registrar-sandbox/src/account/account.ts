import { z } from 'zod'
import { Domain, DomainSketch, type HostSketch } from './domain.ts'

const firstHostId = 100_001
const firstDomainId = 2_000_001
const year = 365 * 86_400_000

/** All that an account holds, as it is written to a file. */
export const State = z.strictObject({
  version: z.literal(1),
  owner: z.string(),
  nextHostId: z.int().positive(),
  nextDomainId: z.int().positive(),
  domains: z.array(Domain),
})
export type State = z.output<typeof State>

/** What a person may change about a domain in the panel. */
export const Edit = DomainSketch.partial().omit({ name: true, id: true })
export type Edit = z.input<typeof Edit>

/** The domains of one customer. Looks and keeps; it does not know what the API refuses. */
export class Account {
  #state: State
  readonly #now: () => number

  constructor(owner: string, now: () => number) {
    this.#now = now
    this.#state = {
      version: 1,
      owner,
      nextHostId: firstHostId,
      nextDomainId: firstDomainId,
      domains: [],
    }
  }

  get owner(): string {
    return this.#state.owner
  }

  get domains(): Domain[] {
    return this.#state.domains
  }

  find(name: string): Domain | undefined {
    return this.#state.domains.find((domain) => domain.name === name.toLowerCase())
  }

  /** Adds a domain, or replaces the one of that name. Left out are: registered now, for a year. */
  add(sketch: z.input<typeof DomainSketch>): Domain {
    const { hosts, ...rest } = DomainSketch.parse(sketch)
    const domain: Domain = {
      id: this.#state.nextDomainId++,
      owner: this.owner,
      created: dayOf(this.#now()),
      expires: dayOf(this.#now() + year),
      ...without(rest),
      hosts: this.#identify(hosts),
    }
    this.remove(domain.name)
    this.#state.domains.push(domain)
    return domain
  }

  remove(name: string): void {
    const rest = this.#state.domains.filter((domain) => domain.name !== name.toLowerCase())
    this.#state.domains = rest
  }

  /** Changes a domain as in the panel: whatever is given stands, however odd. Throws if there is none. */
  edit(name: string, edit: Edit): void {
    const domain = this.find(name)
    if (!domain) throw new RangeError(`The account has no domain ${name}`)
    const { hosts, ...rest } = Edit.parse(edit)
    // A schema's defaults would undo what the edit does not speak of.
    const named = Object.entries(rest).filter(([key]) => key in edit)
    Object.assign(domain, Object.fromEntries(named))
    if (edit.hosts) domain.hosts = this.#identify(hosts ?? [])
  }

  nextHostId(): number {
    return this.#state.nextHostId++
  }

  /** A copy that later changes do not reach. */
  copy(): State {
    return structuredClone(this.#state)
  }

  /** Becomes what the copy was. */
  restore(state: State): void {
    this.#state = structuredClone(state)
  }

  #identify(hosts: z.output<typeof HostSketch>[]): Domain['hosts'] {
    return hosts.map(({ hostId = this.nextHostId(), ...host }) => ({ hostId, ...host }))
  }
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

type Known<T> = { [K in keyof T]: Exclude<T[K], undefined> }

// Drops what is undefined, so that it does not overwrite a default when spread.
function without<T extends object>(object: T): Known<T> {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined)
  // Only undefined values were taken out.
  return Object.fromEntries(entries) as Known<T>
}
