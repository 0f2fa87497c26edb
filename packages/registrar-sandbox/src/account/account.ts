import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { Domain, DomainSketch, type HostSketch } from './domain.ts'
import { makeSamples } from './samples.ts'

const year = 365 * 86_400_000

/** The whole account, as stored in a file. */
const State = z.strictObject({
  version: z.literal(1),
  owner: z.string(),
  nextHostId: z.int().positive(),
  nextDomainId: z.int().positive(),
  domains: z.array(Domain),
})
type State = z.output<typeof State>

/** Fields that can be changed in the panel. */
const Edit = DomainSketch.partial().omit({ name: true, id: true })
export type Edit = z.input<typeof Edit>

export interface AccountOptions {
  owner: string
  now: () => number
  /** Default: the sample domains. Ignored if the file already holds a state. */
  domains?: DomainSketch[]
  /** Where the domains are stored. Default: in memory. */
  file?: string
}

/** The domains of one customer, without the rules of the API. */
export class Account {
  readonly #state: State
  readonly #now: () => number
  readonly #file: string | undefined
  #saved: Promise<void> = Promise.resolve()

  private constructor(state: State, { now, file }: Pick<AccountOptions, 'now' | 'file'>) {
    this.#state = state
    this.#now = now
    this.#file = file
  }

  /** @throws {Error} if the file is invalid. */
  static async open(options: AccountOptions): Promise<Account> {
    const { owner, now, file, domains = makeSamples(now()) } = options
    const stored = file === undefined ? undefined : await readState(file)
    if (stored) return new Account(stored, options)
    const ids = { nextHostId: 100_001, nextDomainId: 2_000_001 }
    const account = new Account({ version: 1, owner, ...ids, domains: [] }, options)
    for (const domain of domains) account.add(domain)
    await account.save()
    return account
  }

  get domains(): readonly Domain[] {
    return this.#state.domains
  }

  find(name: string): Domain | undefined {
    return this.#state.domains.find((domain) => domain.name === name.toLowerCase())
  }

  /** The domain of that name. Throws if there is none. */
  get(name: string): Domain {
    const domain = this.find(name)
    if (!domain) throw new RangeError(`The account has no domain ${name}`)
    return domain
  }

  /** Adds a domain, or replaces the one of that name. Registered now for a year unless given. */
  add(sketch: DomainSketch): void {
    const parsed = DomainSketch.parse(sketch)
    this.remove(parsed.name)
    this.#state.domains.push({
      ...parsed,
      id: parsed.id ?? this.#state.nextDomainId++,
      owner: parsed.owner ?? this.#state.owner,
      created: parsed.created ?? dayOf(this.#now()),
      expires: parsed.expires ?? dayOf(this.#now() + year),
      hosts: this.#identify(parsed.hosts),
    })
  }

  remove(name: string): void {
    const { domains } = this.#state
    this.#state.domains = domains.filter((domain) => domain.name !== name.toLowerCase())
  }

  /** Changes a domain as in the panel, unchecked. Throws if there is none. */
  edit(name: string, edit: Edit): void {
    const { hosts, ...rest } = Edit.parse(edit)
    // Only given fields: the schema's defaults would reset the others.
    const given = Object.fromEntries(Object.entries(rest).filter(([key]) => key in edit))
    const domain = Object.assign(this.get(name), given)
    if (edit.hosts) domain.hosts = this.#identify(hosts ?? [])
  }

  nextHostId(): number {
    return this.#state.nextHostId++
  }

  /** The same domains in memory, for a command that must not change the account. */
  copy(): Account {
    return new Account(structuredClone(this.#state), { now: this.#now })
  }

  /** Resolves when the present state is in the file, if there is one. Saves run in order. */
  save(): Promise<void> {
    const file = this.#file
    if (file === undefined) return this.#saved
    const text = JSON.stringify(this.#state, null, 2)
    const write = async () => {
      await writeFile(`${file}.new`, text, { flush: true })
      await rename(`${file}.new`, file)
    }
    this.#saved = this.#saved.then(write, write)
    return this.#saved
  }

  #identify(hosts: z.output<typeof HostSketch>[]): Domain['hosts'] {
    return hosts.map(({ hostId = this.nextHostId(), ...host }) => ({ hostId, ...host }))
  }
}

/** The state as last saved; undefined if there is no file. */
async function readState(file: string): Promise<State | undefined> {
  try {
    return State.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new Error(`Cannot read the state in ${file}`, { cause: error })
  }
}

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)
