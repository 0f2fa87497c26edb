import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { Domain, DomainSketch, type HostSketch } from './domain.ts'

const firstHostId = 100_001
const firstDomainId = 2_000_001
const year = 365 * 86_400_000

/** The whole account, as stored in a file. */
export const State = z.strictObject({
  version: z.literal(1),
  owner: z.string(),
  nextHostId: z.int().positive(),
  nextDomainId: z.int().positive(),
  domains: z.array(Domain),
})
export type State = z.output<typeof State>

/** Fields that can be changed in the panel. */
export const Edit = DomainSketch.partial().omit({ name: true, id: true })
export type Edit = z.input<typeof Edit>

/** The domains of one customer, without the rules of the API. */
export class Account {
  #state: State
  readonly #now: () => number

  constructor(owner: string, now: () => number) {
    this.#now = now
    const ids = { nextHostId: firstHostId, nextDomainId: firstDomainId }
    this.#state = { version: 1, owner, ...ids, domains: [] }
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

  /** Adds a domain, or replaces the one of that name. Registered now for a year unless given. */
  add(sketch: z.input<typeof DomainSketch>): Domain {
    const parsed = DomainSketch.parse(sketch)
    const domain: Domain = {
      ...parsed,
      id: parsed.id ?? this.#state.nextDomainId++,
      owner: parsed.owner ?? this.owner,
      created: parsed.created ?? dayOf(this.#now()),
      expires: parsed.expires ?? dayOf(this.#now() + year),
      hosts: this.#identify(parsed.hosts),
    }
    this.remove(domain.name)
    this.#state.domains.push(domain)
    return domain
  }

  remove(name: string): void {
    const { domains } = this.#state
    this.#state.domains = domains.filter((domain) => domain.name !== name.toLowerCase())
  }

  /** Changes a domain as in the panel, unchecked. Throws if there is none. */
  edit(name: string, edit: Edit): void {
    const domain = this.find(name)
    if (!domain) throw new RangeError(`The account has no domain ${name}`)
    const { hosts, ...rest } = Edit.parse(edit)
    // Only given fields: the schema's defaults would reset the others.
    const named = Object.entries(rest).filter(([key]) => key in edit)
    Object.assign(domain, Object.fromEntries(named))
    if (edit.hosts) domain.hosts = this.#identify(hosts ?? [])
  }

  nextHostId(): number {
    return this.#state.nextHostId++
  }

  /** A deep copy. */
  copy(): State {
    return structuredClone(this.#state)
  }

  /** Restores a copy. */
  restore(state: State): void {
    this.#state = structuredClone(state)
  }

  #identify(hosts: z.output<typeof HostSketch>[]): Domain['hosts'] {
    return hosts.map(({ hostId = this.nextHostId(), ...host }) => ({ hostId, ...host }))
  }
}

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)

/** Stores the account in one file, replaced atomically. */
export class StateFile {
  readonly #path: string
  #last: Promise<void> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
  }

  /** The state as last saved; undefined if there is no file. Throws if the file is invalid. */
  async load(): Promise<State | undefined> {
    try {
      return State.parse(JSON.parse(await readFile(this.#path, 'utf8')))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw new Error(`Cannot read the state in ${this.#path}`, { cause: error })
    }
  }

  /** Resolves when the state is in the file. Saves run in order. */
  save(state: State): Promise<void> {
    const next = () => this.#write(JSON.stringify(state, null, 2))
    this.#last = this.#last.then(next, next)
    return this.#last
  }

  async #write(text: string): Promise<void> {
    const draft = `${this.#path}.new`
    await writeFile(draft, text, { flush: true })
    await rename(draft, this.#path)
  }
}
