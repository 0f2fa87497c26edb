import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { dataDirectory } from '../../../../test/support/not-tested.ts'
import { type SandboxOptions, startSandbox } from '../../src/server/server.ts'

export const access = { apiUser: 'tester', apiKey: 'a-key-that-must-not-be-seen' }

/** Where the recordings of the registrar lie; they are read, never kept here. */
export const recordings = dataDirectory('REGISTRAR_DATA')
export const hasRecordings = existsSync(join(recordings, 'roundtrips.json'))

/** One element of a parsed answer: attributes begin with `@`. */
export interface Node {
  [name: string]: string | Node[]
}

/** A sandbox of its own for one test, and ways to call it. */
export async function start(options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({ ...access, rate: 'off', ...options })
  const send = (params: Record<string, string>, method = 'POST') =>
    exchange(sandbox.url, method, {
      ApiUser: access.apiUser,
      ApiKey: access.apiKey,
      UserName: access.apiUser,
      ClientIp: '127.0.0.1',
      ...params,
    })
  const call = async (command: string, params: Record<string, string> = {}) =>
    read((await send({ Command: `namecheap.${command}`, ...params })).body)

  return {
    sandbox,
    /** Sends a call and gives back what came over the socket; a broken connection is an error. */
    send,
    /** Sends a call and reads the XML. */
    call,
    getHosts: async (domain: string) => {
      const answer = await call('domains.dns.getHosts', split(domain))
      return answer.list('host').map(describeRow)
    },
    setHosts: (domain: string, rows: Record<string, string>[], extra = {}) =>
      call('domains.dns.setHosts', { ...split(domain), ...number(rows), ...extra }),
    [Symbol.asyncDispose]: () => sandbox.close(),
  }
}

/** Reads an answer strictly; throws a SyntaxError on anything but a whole envelope. */
export function read(body: string) {
  if (XMLValidator.validate(body) !== true) throw new SyntaxError('not well-formed')
  const [root] = walk(parser.parse(body), 'ApiResponse')
  if (!root) throw new SyntaxError('not an answer')
  const list = (name: string) => walk(root, name)
  return {
    status: root['@Status'],
    errors: list('Error').map((error) => [error['@Number'], error.text]),
    command: list('RequestedCommand')[0]?.text,
    hasResponse: list('CommandResponse').length > 0,
    list,
    first: (name: string): Node => list(name)[0] ?? {},
  }
}

/** The bare HTTP exchange, with parameters in the form or, by GET, in the address. */
export function exchange(url: string, method: string, params: Record<string, string>) {
  const text = new URLSearchParams(params).toString()
  const isForm = method === 'POST'
  const headers = isForm ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  return new Promise<{ status: number; type: string | undefined; body: string }>((done, fail) => {
    const outgoing = request(isForm ? url : `${url}?${text}`, { method, headers, agent: false })
    outgoing.on('error', fail).on('response', (incoming) => {
      const parts: Buffer[] = []
      incoming.on('error', fail).on('data', (part) => parts.push(part))
      incoming.on('end', () => {
        const body = Buffer.concat(parts).toString()
        done({ status: incoming.statusCode ?? 0, type: incoming.headers['content-type'], body })
      })
    })
    outgoing.end(isForm ? text : undefined)
  })
}

/** A folder that is gone with the test. */
export async function makeFolder() {
  const path = await mkdtemp(join(tmpdir(), 'sandbox-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

export function split(domain: string) {
  const [SLD = '', ...rest] = domain.split('.')
  return { SLD, TLD: rest.join('.') }
}

/** Numbers the rows from 1, as setHosts wants them. */
export function number(rows: Record<string, string>[]): Record<string, string> {
  const pairs = rows.flatMap((row, index) => Object.entries(row).map(([name, value]) => [`${name}${index + 1}`, value]))
  return Object.fromEntries(pairs)
}

/** A row in five words: name, type, address, preference, TTL. */
export function describeRow(row: Node) {
  return [row['@Name'], row['@Type'], row['@Address'], row['@MXPref'], row['@TTL']]
}

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  alwaysCreateTextNode: true,
  textNodeName: 'text',
  parseAttributeValue: false,
  parseTagValue: false,
  trimValues: false,
  htmlEntities: true,
  isArray: (_name, _path, _isLeaf, isAttribute) => !isAttribute,
})

function walk(node: Node, name: string): Node[] {
  return Object.entries(node).flatMap(([key, value]) => {
    if (typeof value === 'string') return []
    const own = key === name ? value : []
    return [...own, ...value.flatMap((child) => walk(child, name))]
  })
}
