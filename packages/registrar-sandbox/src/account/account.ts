import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { Domain, DomainSketch, dayOf } from './domain.ts'
import { makeSamples } from './samples.ts'

const year = 365 * 86_400_000

/** The whole account, as stored in a file. Files of earlier versions have further fields. */
const State = z.object({
  version: z.literal(1),
  nextHostId: z.int().positive(),
  nextDomainId: z.int().positive(),
  domains: z.array(Domain),
})
type State = z.output<typeof State>

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
  readonly #state: Omit<State, 'domains'>
  readonly #domains: Map<string, Domain>
  readonly #options: AccountOptions
  #saved: Promise<void> = Promise.resolve()

  private constructor({ domains, ...state }: State, options: AccountOptions) {
    this.#state = state
    this.#domains = new Map(domains.map((domain) => [domain.name, domain]))
    this.#options = options
  }

  /** @throws {Error} if the file is invalid. */
  static async open(options: AccountOptions): Promise<Account> {
    const { now, file, domains = makeSamples(now()) } = options
    const stored = file === undefined ? undefined : await readState(file)
    if (stored) return new Account(stored, options)
    const ids = { nextHostId: 100_001, nextDomainId: 2_000_001 }
    const account = new Account({ version: 1, ...ids, domains: [] }, options)
    for (const domain of domains) account.add(domain)
    await account.save()
    return account
  }

  get domains(): Domain[] {
    return [...this.#domains.values()]
  }

  find(name: string): Domain | undefined {
    return this.#domains.get(name.toLowerCase())
  }

  /** The domain of that name. Throws if there is none. */
  get(name: string): Domain {
    const domain = this.find(name)
    if (!domain) throw new RangeError(`The account has no domain ${name}`)
    return domain
  }

  /** Adds a domain, or replaces the one of that name. Registered now for a year unless given. */
  add(sketch: DomainSketch): void {
    const { owner, now } = this.#options
    const { hosts, ...domain } = DomainSketch.parse(sketch)
    this.remove(domain.name)
    this.#domains.set(domain.name, {
      ...domain,
      id: domain.id ?? this.#state.nextDomainId++,
      owner: domain.owner ?? owner,
      created: domain.created ?? dayOf(now()),
      expires: domain.expires ?? dayOf(now() + year),
      hosts: hosts.map(({ hostId = this.nextHostId(), ...host }) => ({ hostId, ...host })),
    })
  }

  remove(name: string): void {
    this.#domains.delete(name.toLowerCase())
  }

  /** Changes a domain as in the panel, unchecked. Throws if there is none. */
  edit(name: string, edit: Partial<DomainSketch>): void {
    this.add({ ...this.get(name), ...edit })
  }

  nextHostId(): number {
    return this.#state.nextHostId++
  }

  /** The same domains in memory, for a command that must not change the account. */
  copy(): Account {
    const { owner, now } = this.#options
    return new Account(structuredClone({ ...this.#state, domains: this.domains }), { owner, now })
  }

  /** Resolves when the present state is in the file, if there is one. Saves run in order. */
  save(): Promise<void> {
    const { file } = this.#options
    if (file === undefined) return this.#saved
    const text = JSON.stringify({ ...this.#state, domains: this.domains }, null, 2)
    const write = async () => {
      await writeFile(`${file}.new`, text, { flush: true })
      await rename(`${file}.new`, file)
    }
    this.#saved = this.#saved.then(write, write)
    return this.#saved
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
