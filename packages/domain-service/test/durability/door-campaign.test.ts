import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Door, type DoorRow, openDoor } from '../support/door.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

// Two clients of the registrar's protocol, REST and dyndns2 write one domain at the same time, each its own records.
// DOOR_WRITES=1000 makes the campaign long.
const writes = Number(process.env.DOOR_WRITES ?? 60)
const seed = Number(process.env.RANDOM_SEED ?? 1)

/** What a client does next: to the record of this number, or to a new one. */
interface Step {
  at: number
  kind: 'add' | 'change' | 'remove'
}

const stepsOf = (index: number): Step[] =>
  fc.sample(fc.record({ at: fc.nat(1_000), kind: fc.constantFrom('add', 'change', 'remove') }), {
    seed: seed + index,
    numRuns: Math.ceil(writes / 4),
  })

/** The records that one client wants: names that it alone has, with their values. */
class OwnRecords {
  readonly records = new Map<string, string>()
  readonly #prefix: string
  #count = 0

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  apply({ at, kind }: Step): { name: string; value: string | undefined } {
    const value = `value-${this.#count++}`
    const known = [...this.records.keys()].filter((_, index, all) => index === at % all.length)[0]
    if (known === undefined || kind === 'add')
      return this.#set(`${this.#prefix}${this.#count}`, value)
    if (kind === 'change') return this.#set(known, value)
    this.records.delete(known)
    return { name: known, value: undefined }
  }

  #set(name: string, value: string) {
    this.records.set(name, value)
    return { name, value }
  }

  toRows = (): DoorRow[] =>
    [...this.records].map(([name, value]) => ({
      HostName: name,
      RecordType: 'TXT',
      Address: value,
    }))

  /** A list with these records in the place of those that the client had. */
  replaceIn = (rows: DoorRow[]): DoorRow[] => [
    ...rows.filter(({ HostName }) => !HostName.startsWith(this.#prefix)),
    ...this.toRows(),
  ]
}

// As such clients do: the same list again, until it is taken.
async function setUntilDone(door: Door, rows: DoorRow[]) {
  let answer = await door.setHosts(rows)
  for (let tries = 0; answer.status !== 'OK' && tries < 20; tries++) {
    expect([answer.http, ...answer.numbers].join()).toMatch(/^(?:405|200,3050900)$/)
    answer = await door.setHosts(rows)
  }
  expect(answer.status).toBe('OK')
}

/** Reads the zone before each of its writes. */
async function runReader(door: Door, own: OwnRecords, steps: Step[]) {
  for (const step of steps) {
    const rows = await door.rows()
    own.apply(step)
    await setUntilDone(door, own.replaceIn(rows))
  }
}

/** Reads the zone once, and goes on from its own list. */
async function runWriter(door: Door, own: OwnRecords, steps: Step[]) {
  const first = await door.rows()
  for (const step of steps) {
    own.apply(step)
    await setUntilDone(door, own.replaceIn(first))
  }
}

async function runRest(service: Service, own: OwnRecords, steps: Step[]) {
  for (const step of steps) {
    const { name, value } = own.apply(step)
    const path = `/api/domains/example.com/dns/rrsets/${name}/TXT`
    const call = () =>
      value === undefined
        ? service.call('DELETE', path)
        : service.call('PUT', path, { body: { values: [value], ttl: 300 } })
    let { status } = await call()
    for (let tries = 0; status >= 500 && tries < 20; tries++) status = (await call()).status
    expect([200, 201, 204, 404]).toContain(status)
  }
}

async function runDyndns(service: Service, steps: Step[]): Promise<string> {
  const headers = basic(await createToken(service, { records: [{ name: 'home', types: ['A'] }] }))
  let address = ''
  for (const { at } of steps.slice(0, 30)) {
    address = `192.0.2.${at % 250}`
    const path = `/nic/update?hostname=home.example.com&myip=${address}`
    let { text } = await send(service, 'GET', path, { headers })
    for (let tries = 0; text === '911' && tries < 20; tries++)
      text = (await send(service, 'GET', path, { headers })).text
    expect(text).toMatch(/^(?:good|nochg) /)
  }
  return address
}

test(`${writes} writes of two clients of the protocol, REST and dyndns2 lose no record, and leave none`, async () => {
  const hosts = [{ name: 'www', type: 'A', address: '192.0.2.1' }]
  await using service = await start({ domains: [{ name: 'example.com', hosts }] })
  const [reader, writer] = [await openDoor(service), await openDoor(service)]
  const [ofReader, ofWriter, ofRest] = ['reader', 'writer', 'rest'].map(
    (name) => new OwnRecords(name),
  )
  if (!ofReader || !ofWriter || !ofRest) throw new Error('no records')
  const command = 'namecheap.domains.dns.setHosts'
  for (let after = 5; after < writes; after += 15)
    service.sandbox.fault({ kind: after % 2 ? 'lost' : 'reset', command, after })

  const [, , , address] = await Promise.all([
    runReader(reader, ofReader, stepsOf(0)),
    runWriter(writer, ofWriter, stepsOf(1)),
    runRest(service, ofRest, stepsOf(2)),
    runDyndns(service, stepsOf(3)),
  ])

  const wanted = [ofReader, ofWriter, ofRest].flatMap(({ records }) =>
    [...records].map(([name, value]) => `${name} TXT ${value}`),
  )
  const found = service.live().map((each) => each.split(' ').slice(0, 3).join(' '))
  expect(found.sort()).toEqual([...wanted, 'www A 192.0.2.1', `home A ${address}`].sort())
})
