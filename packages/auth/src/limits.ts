import { BlockList, isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { z } from 'zod'

// Limits of users and tokens: domains, folders, proposals, RRsets and networks. Pure schemas and matching.

export const Writes = z
  .enum(['propose'], 'must be propose')
  .describe('propose: another person approves each write of a zone')

/** Whether an entry of a list covers a name, or a narrower entry: `*.uk` covers `*.co.uk`. */
const covers = {
  domains: (pattern: string, name: string) =>
    pattern === name || (pattern.startsWith('*.') && name.endsWith(pattern.slice(1))),
  folders: (folder: string, path: string) => path.startsWith(folder),
}

type Kind = keyof typeof covers

export const listLimits: Kind[] = ['domains', 'folders']

/** The intersection of two lists; an absent list allows all. */
export function intersect(kind: Kind, one?: string[], other?: string[]): string[] | undefined {
  if (!one || !other) return one ?? other
  const within = (list: string[], wanted: string[]) =>
    wanted.filter((entry) => list.some((each) => covers[kind](each, entry)))
  return [...new Set([...within(other, one), ...within(one, other)])]
}

export const findOutside = (kind: Kind, list: string[] | undefined, wanted: string[] = []) =>
  list && wanted.find((entry) => !list.some((each) => covers[kind](each, entry)))

/** Schema of a list whose entries `read` normalises; where `read` returns nothing, the fault is `message`. */
const listOf = (kind: string, read: (text: string) => string, message: string) => {
  const entry = z.string('must be a string').overwrite(read).refine(Boolean, message)
  return z.array(entry, `must be a list of ${kind}s`).min(1, `must name at least one ${kind}`)
}

/** Names of domains, and `*.` patterns for all domains below a name, as lower-case A-labels. */
export const Domains = listOf('domain', canonicalDomain, 'must be a domain, or one after *.')

/** Whether a list covers a domain in any spelling, exactly or by a `*.` pattern. */
export function coversDomain(domains: string[], domain: string): boolean {
  const name = canonicalDomain(domain)
  return name !== '' && !name.startsWith('*') && domains.some((pattern) => covers.domains(pattern, name))
}

/** The lower-case A-labels of a domain or of a `*.` pattern; empty if it is neither. */
function canonicalDomain(text: string): string {
  if (text.length > 255) return '' // `*.` and the longest name (RFC 1035, 2.3.4).
  const [, star = '', name = ''] = domainPattern.exec(text) ?? []
  const canonical = domainToASCII(name)
  return canonical && star + canonical
}

// Checked before domainToASCII, which parses a URL host: it would drop a path, and turn `1.2` into an address.
// One label alone is a domain only after `*.`.
const domainPattern = /^(?:(\*\.)|(?=.+\.))((?:[\p{L}\p{M}\p{N}_-]+\.)*[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*)$/u

/**
 * Folders of the static service as `docs/`: normalised to NFC, none inside another. One leading slash is dropped, a
 * missing trailing one is added.
 */
export const Folders = listOf('folder', canonicalFolder, 'must be a folder such as docs/')
  .max(10, 'must name at most 10 folders')
  .overwrite((folders) =>
    [...new Set(folders)].filter((folder) => !folders.some((other) => other !== folder && folder.startsWith(other))),
  )

export const coversPath = (folders: string[], path: string) => folders.some((folder) => covers.folders(folder, path))

function canonicalFolder(text: string): string {
  const path = text.normalize('NFC').replace(/^\//, '').replace(/\/$/, '')
  const isPath = path.isWellFormed() && Buffer.byteLength(path) < 1024
  const isFolder = isPath && path.split('/').every((segment) => folderSegment.test(segment))
  return isFolder ? `${path}/` : ''
}

// Like paths of the static service: no segment is `.` or `..`, or contains a control character.
const folderSegment = /^(?!\.{1,2}$)[^\\\p{Cc}\u202a-\u202e\u2066-\u2069]+$/u

/** `name` is relative to its domain; `@` is the domain itself. */
export interface Rrset {
  name: string
  type: string
}

/** Record types that the domain service can write: the same as in its own table. */
export const writableTypes = 'A AAAA ALIAS CAA CNAME MX MXE NS TXT URL URL301 FRAME'.split(' ')

const RecordType = z
  .string()
  .toUpperCase()
  .refine((type) => writableTypes.includes(type), `must be a type that can be written: ${writableTypes.join(', ')}`)

/** RRsets by name and types. */
export const RecordLimit = z
  .strictObject({
    name: z
      .string()
      .trim()
      .toLowerCase()
      .min(1)
      .max(253)
      .overwrite((name) => (isNamePattern(name) ? toALabels(name) : name))
      .refine(isNamePattern, 'must be a name relative to the domain, with at most one label *')
      .describe('relative to the domain; `*` for one label or more; `@` for the domain'),
    types: z.array(RecordType).min(1).max(20),
  })
  .meta({ id: 'RecordLimit', examples: [{ name: '_acme-challenge', types: ['TXT'] }] })
export type RecordLimit = z.infer<typeof RecordLimit>

/** The limits of users and tokens in both services, as requests give them. An absent limit does not limit. */
export const wantedLimits = {
  domains: Domains.max(100, 'must name at most 100 domains').optional().describe('only these'),
  folders: Folders.optional().describe('only these'),
  writes: Writes.optional(),
}
export type Limits = z.infer<z.ZodObject<typeof wantedLimits>>

/** The limits as responses show them. */
export const shownLimits = {
  domains: z.nullable(z.array(z.string())).meta({ description: 'null: not limited', examples: [['example.com']] }),
  folders: z.nullable(z.array(z.string())).meta({ description: 'null: not limited', examples: [null] }),
  writes: Writes.nullable().meta({ examples: [null] }),
}

export const describeLimits = ({ domains, folders, writes }: Limits) => ({
  domains: domains ?? null,
  folders: folders ?? null,
  writes: writes ?? null,
})

export const namesRrset = (limits: readonly RecordLimit[], name: string, type: string) =>
  limits.some((limit) => limit.types.includes(type.toUpperCase()) && matchesName(limit.name, name))

/** For messages: `_acme-challenge TXT, home A/AAAA`. */
export const describeRecordLimits = (limits: readonly RecordLimit[]) =>
  limits.map(({ name, types }) => `${name} ${types.join('/')}`).join(', ')

// `*` stands for at least one label; the domain itself (`@`) has none.
function matchesName(pattern: string, name: string): boolean {
  const wanted = name.toLowerCase()
  const [before = '', after] = pattern.split('*')
  if (after === undefined) return pattern === wanted
  const isLongEnough = wanted !== '@' && wanted.length >= pattern.length
  return isLongEnough && wanted.startsWith(before) && wanted.endsWith(after)
}

function isNamePattern(text: string): boolean {
  const isLabel = (label: string) => /^(?:\*|[\p{L}\p{M}\p{N}_-]{1,63})$/u.test(label)
  return text === '@' || (text.split('*').length <= 2 && text.split('.').every(isLabel))
}

// Zones have A-labels. The last label must not be a number, which a URL host takes for an address.
const toALabels = (name: string) =>
  /^\p{ASCII}+$/u.test(name) ? name : domainToASCII(`${name}.x`).slice(0, -'.x'.length)

/** An IPv4 or IPv6 network such as `192.0.2.0/24`, or one address. */
export const Network = z
  .union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'must be a network such as 192.0.2.0/24')
  .meta({ examples: ['192.0.2.0/24'] })

/** Whether an address, without its zone, is in one of these networks. IPv4-mapped IPv6 addresses count as IPv4. */
export function isInNetworks(text: string, networks: readonly string[]): boolean {
  const address = text.replace(/^::ffff:(?=[0-9.]+$)/i, '').replace(/%.*/, '')
  const version = isIP(address)
  const family = version === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  for (const network of networks) {
    const [base = '', bits = version === 4 ? 32 : 128] = network.split('/')
    // BlockList would match an IPv4 address with ::/0.
    if (isIP(base) === version) list.addSubnet(base, Number(bits), family)
  }
  return version !== 0 && list.check(address, family)
}
