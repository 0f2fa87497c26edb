import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { z } from 'zod'
import { type DoorAnswer, type DoorRow, openDoor, toRows } from './door.ts'
import { openNpmClient } from './npm-client.ts'
import { basic, send } from './protocol-client.ts'
import type { ServiceProcess } from './service-process.ts'

export const domain = 'example.com'

/** What a client does next: to the record of this number, or to a new one. */
export interface Step {
  at: number
  kind: 'add' | 'change' | 'remove'
}

/** One of those who write the domain, each its own records. */
export interface DoorClient {
  /** Makes one more change, and repeats it until it is done. */
  write: (step: Step) => Promise<void>
  /** Its records as `name type address`. */
  records: () => string[]
}

const maxOwn = 8

/** The records that one client wants: names that it alone has, with their values. */
class OwnRecords {
  readonly #records = new Map<string, string>()
  readonly #prefix: string
  #count = 0

  constructor(prefix: string) {
    this.#prefix = `${prefix}-`
  }

  apply({ at, kind }: Step): { name: string; value: string | undefined } {
    const value = `value-${this.#count++}`
    const names = [...this.#records.keys()]
    const known = names[at % Math.max(1, names.length)]
    if (known === undefined || (kind === 'add' && names.length < maxOwn))
      return this.#set(`${this.#prefix}${this.#count}`, value)
    if (kind !== 'remove') return this.#set(known, value)
    this.#records.delete(known)
    return { name: known, value: undefined }
  }

  #set(name: string, value: string) {
    this.#records.set(name, value)
    return { name, value }
  }

  toTexts = () => [...this.#records].map(([name, value]) => `${name} TXT ${value}`)

  /** A list with these records in the place of those that the client had. */
  replaceIn = (rows: DoorRow[]): DoorRow[] => [
    ...rows.filter(({ HostName }) => !HostName.startsWith(this.#prefix)),
    ...[...this.#records].map(([name, value]) => ({
      HostName: name,
      RecordType: 'TXT',
      Address: value,
      TTL: '1800',
    })),
  ]
}

const lostConnection = /^(?:ECONNREFUSED|ECONNRESET|EPIPE|UND_ERR_SOCKET)$/
const Failure = z.object({ code: z.string().optional(), cause: z.unknown().optional() })

function isConnectionLost(error: unknown): boolean {
  const { data } = Failure.safeParse(error)
  return data !== undefined && (lostConnection.test(data.code ?? '') || isConnectionLost(data.cause))
}

/** Repeats a call while the service is down, or `call` returns undefined. */
export async function repeat<T>(service: ServiceProcess, call: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    await service.whenReady()
    try {
      const answer = await call()
      if (answer !== undefined) return answer
    } catch (error) {
      if (!isConnectionLost(error)) throw error
    }
    await pause(100)
  }
}

/** Undefined where the answer is to come again; 503: a service that has just started may shed load on a busy machine. */
function accepted(answer: DoorAnswer): DoorAnswer | undefined {
  if (answer.status === 'OK') return answer
  expect([answer.http, ...answer.numbers].join()).toMatch(/^(?:405|503|200,3050900)$/)
  return undefined
}

/** An API token with these limits, also from a service that sheds load. */
export async function createToken(service: ServiceProcess, limits: object): Promise<string> {
  const body = { name: `campaign ${crypto.randomUUID()}`, ...limits }
  const created = await service.insist('POST', '/api/tokens', body)
  return z.object({ token: z.string() }).parse(created.body).token
}

/** Speaks the registrar's protocol. It reads the zone before each of its writes, or once and goes on from its own list. */
export async function protocolClient(
  service: ServiceProcess,
  { name, readsAgain }: { name: string; readsAgain: boolean },
): Promise<DoorClient> {
  const own = new OwnRecords(name)
  const door = await openDoor(service, await createToken(service, { role: 'editor' }))
  const read = async () => toRows(await repeat(service, async () => accepted(await door.getHosts(domain))))
  const first = await read()
  const write = async (step: Step) => {
    const rows = readsAgain ? await read() : first
    own.apply(step)
    const list = own.replaceIn(rows)
    await repeat(service, async () => accepted(await door.setHosts(list)))
  }
  return { write, records: own.toTexts }
}

// What the npm client makes of a 405, and of a number of the registrar for a failure.
const again = /Too many requests|non-xml response|3050900/i

/** The npm client, which `turnNpmClients` leads to the service. */
export async function npmClient(service: ServiceProcess, name: string): Promise<DoorClient> {
  const own = new OwnRecords(name)
  const client = openNpmClient(await createToken(service, { role: 'editor' }))
  const unlessAgain = (error: unknown) => {
    if (!again.test(String(error))) throw error
    return undefined
  }
  const write = async (step: Step) => {
    const { hosts } = await repeat(service, () => client.dns.getHosts(domain).catch(unlessAgain))
    own.apply(step)
    const rows = hosts.map(({ Name, Type, Address, TTL }) => ({
      HostName: `${Name}`,
      RecordType: `${Type}`,
      Address: `${Address}`,
      TTL: `${TTL}`,
    }))
    const list = own.replaceIn(rows)
    await repeat(service, () => client.dns.setHosts(domain, list).catch(unlessAgain))
  }
  return { write, records: own.toTexts }
}

const Hosts = z.object({
  hosts: z.array(z.object({ id: z.string(), name: z.string(), address: z.string() })),
})

async function callApi(
  service: ServiceProcess,
  method: string,
  { path, body, headers }: { path: string; body?: object; headers?: Record<string, string> },
) {
  const session = await service.sessionOf('admin')
  return send(service, method, `/api/domains/${domain}/dns/${path}`, {
    headers: {
      authorization: `Bearer ${session}`,
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  })
}

/** As the console does: reads the zone, sends what differs for that zone only, and reads again if it has changed meanwhile. */
export function consoleClient(service: ServiceProcess, prefix: string): DoorClient {
  const own = new OwnRecords(prefix)
  const write = async (step: Step) => {
    const { name, value } = own.apply(step)
    await repeat(service, async () => {
      const read = await callApi(service, 'GET', { path: 'hosts' })
      if (read.status === 503) return undefined
      const found = Hosts.parse(JSON.parse(read.text)).hosts.find((each) => each.name === name)
      if (found?.address === value) return true
      const record = { name, type: 'TXT', address: value, ttl: 1800 }
      const body =
        value === undefined
          ? { remove: [found?.id] }
          : found
            ? { update: [{ id: found.id, address: value }] }
            : { add: [record] }
      const headers = { 'if-match': read.headers.get('etag') ?? '' }
      const { status } = await callApi(service, 'PATCH', { path: 'hosts', body, headers })
      expect([200, 412, 500, 502, 503, 504]).toContain(status)
      return undefined
    })
  }
  return { write, records: own.toTexts }
}

/** A program that sets its RRsets by REST. */
export function restClient(service: ServiceProcess, prefix: string): DoorClient {
  const own = new OwnRecords(prefix)
  const write = async (step: Step) => {
    const { name, value } = own.apply(step)
    const path = `rrsets/${name}/TXT`
    await repeat(service, async () => {
      const { status } = await (value === undefined
        ? callApi(service, 'DELETE', { path })
        : callApi(service, 'PUT', { path, body: { values: [value], ttl: 1800 } }))
      if (status >= 500) return undefined
      expect([200, 201, 204, 404]).toContain(status)
      return true
    })
  }
  return { write, records: own.toTexts }
}

/** A router that tells its address. */
export async function dyndnsClient(service: ServiceProcess, name: string): Promise<DoorClient> {
  const headers = basic(await createToken(service, { records: [{ name, types: ['A'] }] }))
  let address: string | undefined
  const write = async ({ at }: Step) => {
    address = `192.0.2.${at % 250}`
    const path = `/nic/update?hostname=${name}.${domain}&myip=${address}`
    await repeat(service, async () => {
      const { status, text } = await send(service, 'GET', path, { headers })
      if (status === 503 || /^(?:911|abuse)$/.test(text)) return undefined
      expect(text).toMatch(/^(?:good|nochg) /)
      return true
    })
  }
  return { write, records: () => (address === undefined ? [] : [`${name} A ${address}`]) }
}
