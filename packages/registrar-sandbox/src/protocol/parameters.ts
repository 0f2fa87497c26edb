import * as responses from './responses.ts'

const secret = 'apikey'

/** The parameters of one call, from query and form. Names are case-insensitive. */
export class Params {
  readonly #values = new Map<string, { name: string; value: string }>()

  constructor(...sources: Iterable<[string, string]>[]) {
    for (const source of sources) {
      for (const [name, value] of source) this.#values.set(name.toLowerCase(), { name, value })
    }
  }

  /** The value as sent; undefined if empty. */
  get(name: string): string | undefined {
    return this.#values.get(name.toLowerCase())?.value || undefined
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase())
  }

  require(name: string, complaint: (name: string) => Error = responses.parameterMissing): string {
    const value = this.get(name)
    if (value === undefined) throw complaint(name)
    return value
  }

  /** The numbers of the rows of setHosts, ascending. */
  get rowNumbers(): number[] {
    const found = [...this.#values.keys()].flatMap((name) => {
      const [, number] = /^(?:hostname|recordtype|address|mxpref|ttl)([1-9]\d{0,4})$/.exec(name) ?? []
      return number ? Number(number) : []
    })
    return [...new Set(found)].sort((a, b) => a - b)
  }

  withCommand(command: string): Params {
    return new Params(this.#pairs(), [['Command', command]])
  }

  /** All parameters except the API key, by their names as sent. */
  withoutKey(): Record<string, string> {
    return Object.fromEntries(this.#pairs().filter(([name]) => name.toLowerCase() !== secret))
  }

  /** The command, lower-cased; empty if there is none. */
  get command(): string {
    return this.get('Command')?.toLowerCase() ?? ''
  }

  /** The domain the call is about, lower-cased, from DomainName or SLD and TLD; else undefined. */
  get domain(): string | undefined {
    const [sld, tld] = [this.get('SLD'), this.get('TLD')]
    return (this.get('DomainName') ?? (sld && tld && `${sld}.${tld}`))?.toLowerCase()
  }

  #pairs(): [string, string][] {
    return [...this.#values.values()].map(({ name, value }) => [name, value])
  }
}

/** One record as sent. `number` is that of `HostName1`, `HostName2`, … */
export interface Submitted {
  number: number
  name: string
  type: string
  address: string
  mxPref: string | undefined
  ttl: string | undefined
}

export function readSubmitted(params: Params): Submitted[] {
  return params.rowNumbers.map((number) => ({
    number,
    name: readName(params, number),
    type: params.require(`RecordType${number}`).toUpperCase(),
    address: params.require(`Address${number}`),
    mxPref: params.get(`MXPref${number}`),
    ttl: params.get(`TTL${number}`),
  }))
}

function readName(params: Params, number: number): string {
  const parameter = `HostName${number}`
  if (!params.has(parameter)) throw responses.parameterMissing(parameter)
  return (params.get(parameter) ?? '@').toLowerCase()
}
