import { BlockList, isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { z } from 'zod'

// Limits of users and tokens: domains, folders, proposals, RRsets and networks. Pure schemas and matching.

export const Writes = z
  .enum(['propose'], 'must be propose')
  .describe('propose: another person approves each write of a zone')

/** Whether an entry of each kind of list covers a name, or a narrower entry. */
const covers = {
  // `*.uk` covers `*.co.uk`.
  domains: (pattern: string, name: string) =>
    pattern === name || (pattern.startsWith('*.') && name.endsWith(pattern.slice(1))),
  folders: (folder: string, path: string) => path.startsWith(folder),
}

type Kind = keyof typeof covers

/** The limits that are lists. */
export const listLimits: Kind[] = ['domains', 'folders']

/** The intersection of two lists; an absent list allows all. */
export function intersect(kind: Kind, one?: string[], other?: string[]): string[] | undefined {
  if (!one || !other) return one ?? other
  const within = (list: string[], wanted: string[]) =>
    wanted.filter((entry) => list.some((each) => covers[kind](each, entry)))
  return [...new Set([...within(other, one), ...within(one, other)])]
}

/** The first wanted entry that `list` does not cover. */
export const findOutside = (kind: Kind, list: string[] | undefined, wanted: string[] = []) =>
  list && wanted.find((entry) => !list.some((each) => covers[kind](each, entry)))

/** Schema of a list whose entries `read` normalises; where `read` returns undefined, the fault is `message`. */
const listOf = (kind: string, read: (text: string) => string | undefined, message: string) => {
  const entry = z.string('must be a string').transform((text, context) => {
    const found = read(text)
    if (found !== undefined) return found
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })
  return z.array(entry, `must be a list of ${kind}s`).min(1, `must name at least one ${kind}`)
}

/** Names of domains, and `*.` patterns for all domains below a name, as lower-case A-labels. */
export const Domains = listOf('domain', canonicalDomain, 'must be a domain, or one after *.')

/**
 * Whether a caller may see this domain: listed exactly, or below a listed `*.` pattern; without a list, always. Case and
 * Unicode spelling of the domain do not matter; the list is canonical already.
 */
export function allowsDomain({ domains }: { domains?: string[] }, domain: string): boolean {
  if (!domains) return true
  const name = canonicalDomain(domain)
  if (!name || name.startsWith('*')) return false
  return domains.some((pattern) => covers.domains(pattern, name))
}

/** The lower-case A-labels of a domain or of a `*.` pattern; undefined if it is neither. */
function canonicalDomain(text: string): string | undefined {
  if (text.length > maxPatternLength) return undefined
  const [, star = '', name = ''] = domainPattern.exec(text) ?? []
  const canonical = domainToASCII(name)
  return canonical ? star + canonical : undefined
}

// `*.` and the longest name (RFC 1035, 2.3.4).
const maxPatternLength = 255

// Checked before domainToASCII, which parses a URL host: it would drop a path, and turn `1.2` into an address.
const domainPattern =
  /^(\*\.)?((?:[\p{L}\p{M}\p{N}_-]+\.)+[\p{L}\p{M}\p{N}-]*\p{L}[\p{L}\p{M}\p{N}-]*)$/u

/**
 * Folders of the static service as `docs/`: normalised to NFC, none inside another. One leading slash is dropped, a
 * missing trailing one is added.
 */
export const Folders = listOf('folder', canonicalFolder, 'must be a folder such as docs/')
  .max(10, 'must name at most 10 folders')
  .transform((folders) => [...new Set(folders)].filter(isOutermost))

/** Whether a caller may see a path, or a folder that ends in a slash; without a list, always. */
export const allowsPath = ({ folders }: { folders?: string[] }, path: string): boolean =>
  !folders || folders.some((folder) => covers.folders(folder, path))

const isOutermost = (folder: string, _at: number, folders: string[]) =>
  !folders.some((other) => other !== folder && folder.startsWith(other))

function canonicalFolder(text: string): string | undefined {
  const path = text.normalize('NFC').replace(/^\//, '').replace(/\/$/, '')
  const isPath = path.isWellFormed() && Buffer.byteLength(path) < maxFolderBytes
  const isFolder = isPath && path.split('/').every((segment) => folderSegment.test(segment))
  return isFolder ? `${path}/` : undefined
}

// Like paths of the static service: no segment is `.` or `..`, or contains a control character.
const maxFolderBytes = 1024
const folderSegment = /^(?!\.{1,2}$)[^\\\p{Cc}\u202a-\u202e\u2066-\u2069]+$/u

/** A set of records with one name, relative to its domain (`@` for the domain itself), and one type. */
export interface Rrset {
  name: string
  type: string
}

/** Record types that the domain service can write: the same as in its own table. */
export const writableTypes = [
  ...['A', 'AAAA', 'ALIAS', 'CAA', 'CNAME', 'MX', 'MXE', 'NS', 'TXT', 'URL', 'URL301', 'FRAME'],
]

/** RRsets by name and types. `*` as a whole label stands for one or more labels; `@` is the domain itself. */
export const RecordLimit = z
  .strictObject({
    name: z
      .string()
      .trim()
      .toLowerCase()
      .min(1)
      .max(253)
      .refine(isNamePattern, 'must be a name relative to the domain, with at most one label *')
      .describe('relative to the domain; `*` for one label or more; `@` for the domain'),
    types: z
      .array(
        z
          .string()
          .toUpperCase()
          .refine(
            (type) => writableTypes.includes(type),
            `must be a type that can be written: ${writableTypes.join(', ')}`,
          ),
      )
      .min(1)
      .max(20),
  })
  .meta({ id: 'RecordLimit' })
export type RecordLimit = z.infer<typeof RecordLimit>

/** The limits of users and tokens in both services, as requests give them. An absent limit does not limit. */
export const wantedLimits = {
  domains: Domains.max(100).optional().describe('only these'),
  folders: Folders.optional().describe('only these'),
  writes: Writes.optional(),
}
export type Limits = z.infer<z.ZodObject<typeof wantedLimits>>

const names = (example: string[] | null) =>
  z
    .array(z.string())
    .nullable()
    .meta({ description: 'null: not limited', examples: [example] })

/** The limits as responses show them. */
export const shownLimits = {
  domains: names(['example.com']),
  folders: names(null),
  writes: Writes.nullable().meta({ examples: [null] }),
}

export const describeLimits = ({ domains, folders, writes }: Limits) => ({
  domains: domains ?? null,
  folders: folders ?? null,
  writes: writes ?? null,
})
export const shownRecords = z.array(RecordLimit).nullable().describe('null: not limited')

/** Whether the limits name this RRset; `name` is relative to its domain, `@` for the domain itself. */
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
  const labels = text.split('.')
  const isLabel = (label: string) => /^(?:\*|[\p{L}\p{M}\p{N}_-]{1,63})$/u.test(label)
  const stars = labels.filter((label) => label === '*')
  return text === '@' || (stars.length <= 1 && labels.every(isLabel))
}

/** An IPv4 or IPv6 network such as `192.0.2.0/24`, or one address. */
export const Network = z
  .string()
  .trim()
  .refine((text) => readNetwork(text) !== undefined, 'must be a network such as 192.0.2.0/24')

/** Whether an address, without its zone, is in one of these networks. IPv4-mapped IPv6 addresses count as IPv4. */
export function isInNetworks(text: string, networks: readonly string[]): boolean {
  const own = readNetwork(text.replace(/^::ffff:(?=[0-9.]+$)/i, '').replace(/%.*/, ''))
  if (!own) return false
  const list = new BlockList()
  for (const network of networks.flatMap((each) => readNetwork(each) ?? [])) {
    // BlockList would match an IPv4 address with ::/0.
    if (network.family === own.family) list.addSubnet(network.address, network.length, own.family)
  }
  return list.check(own.address, own.family)
}

function readNetwork(text: string) {
  const [, address = '', bits] = /^([^/%]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  if (version === 0) return undefined
  const max = version === 4 ? 32 : 128
  const length = bits === undefined ? max : Number(bits)
  const family = version === 4 ? ('ipv4' as const) : ('ipv6' as const)
  return length <= max ? { address, length, family } : undefined
}
