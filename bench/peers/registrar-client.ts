import { Agent, request } from 'undici'
import { account } from '../harness/services.ts'

export interface Row {
  name: string
  type: string
  address: string
  ttl: string
}

/** A client of the registrar's API as one would write it in an hour: right, and for one writer at a time. */
export class PlainClient {
  readonly #url: string
  readonly #agent = new Agent()

  constructor(url: string) {
    this.#url = url
  }

  async read(domain: string): Promise<Row[]> {
    const text = await this.#call('namecheap.domains.dns.getHosts', domain, {})
    return [...text.matchAll(/<host\b([^>]*)>/gi)].map(([, attributes = '']) => {
      const value = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
      return {
        name: value('Name'),
        type: value('Type'),
        address: value('Address'),
        ttl: value('TTL'),
      }
    })
  }

  /** Reads the zone, writes it with one row more, and reads whether that row is there. */
  async add(domain: string, row: Row): Promise<void> {
    const rows = [...(await this.read(domain)), row]
    const params = rows.flatMap(({ name, type, address, ttl }, at) => [
      [`HostName${at + 1}`, name],
      [`RecordType${at + 1}`, type],
      [`Address${at + 1}`, address],
      [`TTL${at + 1}`, ttl],
    ])
    await this.#call('namecheap.domains.dns.setHosts', domain, Object.fromEntries(params))
    const after = await this.read(domain)
    if (after.length !== rows.length) throw new Error(`${domain} has ${after.length} records`)
  }

  close(): Promise<void> {
    return this.#agent.close()
  }

  async #call(Command: string, domain: string, params: Record<string, string>): Promise<string> {
    const [SLD = '', TLD = ''] = domain.split('.')
    const answer = await request(this.#url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...account, Command, SLD, TLD, ...params }).toString(),
      dispatcher: this.#agent,
    })
    const text = await answer.body.text()
    if (!text.includes('Status="OK"')) throw new Error(`${Command}: ${text.slice(0, 300)}`)
    return text
  }
}
