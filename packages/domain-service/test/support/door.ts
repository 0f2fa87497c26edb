import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { createToken, type ProtocolAnswer, type Reachable, send } from './protocol-client.ts'

const path = '/integrations/registrar/xml.response'

export interface DoorRow {
  HostName: string
  RecordType: string
  Address: string
  MXPref?: string
  TTL?: string
}

/** One answer of the registrar's API. */
export interface DoorAnswer {
  http: number
  status: string
  /** Numbers of its errors. */
  numbers: string[]
  words: string
  command: string
  text: string
  /** Attributes of the elements with this name. */
  all: (name: string) => Record<string, string>[]
}

/** A client of the registrar's API with an API token of these limits, or with this key. */
export async function openDoor(service: Reachable, limits: object | string = { role: 'editor' }) {
  const key = typeof limits === 'string' ? limits : await createToken(service, limits)
  const call = async (command: string, params: object = {}, method = 'POST') => {
    const all = { ApiUser: 'any', ApiKey: key, UserName: 'any', ClientIp: '127.0.0.1', ...params }
    const text = new URLSearchParams({ Command: `namecheap.${command}`, ...all }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer =
      method === 'GET'
        ? await send(service, 'GET', `${path}?${text}`)
        : await send(service, 'POST', path, { headers, body: text })
    return readAnswer(answer)
  }
  const setHosts = (rows: DoorRow[], params: object = {}, domain = 'example.com') =>
    call('domains.dns.setHosts', { ...split(domain), ...numbered(rows), ...params })
  const getHosts = async (domain = 'example.com') => call('domains.dns.getHosts', split(domain))
  return {
    key,
    call,
    setHosts,
    getHosts,
    /** The rows of getHosts as setHosts takes them. */
    rows: async (domain = 'example.com') => toRows(await getHosts(domain)),
  }
}

export type Door = Awaited<ReturnType<typeof openDoor>>

export const split = (domain: string) => {
  const [SLD = '', ...rest] = domain.split('.')
  return { SLD, TLD: rest.join('.') }
}

export const toRows = (answer: DoorAnswer): DoorRow[] =>
  answer.all('host').map((host) => ({
    HostName: host.Name ?? '',
    RecordType: host.Type ?? '',
    Address: host.Address ?? '',
    MXPref: host.MXPref ?? '',
    TTL: host.TTL ?? '',
  }))

const numbered = (rows: object[]) =>
  Object.fromEntries(
    rows.flatMap((row, index) => Object.entries(row).map(([name, value]) => [`${name}${index + 1}`, String(value)])),
  )

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '',
  attributesGroupName: '$',
  textNodeName: 'text',
  alwaysCreateTextNode: true,
  parseAttributeValue: false,
  parseTagValue: false,
  trimValues: false,
  htmlEntities: true,
  isArray: (_name, _path, _isLeaf, isAttribute) => !isAttribute,
})

interface Node {
  [name: string]: Node[] | string | Record<string, string>
}

export function readAnswer({ status, text }: Pick<ProtocolAnswer, 'status' | 'text'>): DoorAnswer {
  if (status !== 200) return { http: status, status: '', numbers: [], words: text, command: '', text, all: () => [] }
  if (XMLValidator.validate(text) !== true) throw new SyntaxError(`not well-formed: ${text}`)
  const root: Node = parser.parse(text)
  const all = (name: string) => walk(root, name).map(({ $ = {} }) => $ as Record<string, string>)
  const textsOf = (name: string) => walk(root, name).map((each) => String(each.text ?? ''))
  return {
    http: status,
    status: all('ApiResponse')[0]?.Status ?? '',
    numbers: all('Error').map(({ Number: number }) => number ?? ''),
    words: textsOf('Error').join(),
    command: textsOf('RequestedCommand')[0] ?? '',
    text,
    all,
  }
}

const walk = (node: Node, name: string): Node[] =>
  Object.entries(node).flatMap(([key, value]) => {
    if (!Array.isArray(value)) return []
    const own = key === name ? value : []
    return [...own, ...value.flatMap((child) => (typeof child === 'object' ? walk(child, name) : []))]
  })
