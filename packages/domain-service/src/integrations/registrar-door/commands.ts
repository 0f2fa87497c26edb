import { allowsDomain, type Caller, hasRole, mayReadRrset } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import {
  type Element,
  element,
  errors,
  type Params,
  readListQuery,
  readSubmitted,
  results,
  type Submitted,
} from '@domains-and-files/registrar-sandbox/protocol'
import { type Domain, readDomain } from '../../dns/domain-name.ts'
import {
  defaultMxPref,
  defaultTtl,
  keyOf,
  type Row,
  toRecord,
  type Zone,
} from '../../dns/record.ts'
import { toRow } from '../../dns/record-validation.ts'
import type { DomainList } from '../../domain-list/domain-list.ts'
import type {
  GivenTo,
  GivenZone,
  GivenZones,
  KnownRecord,
  KnownZone,
} from '../../ledger/given-zones.ts'
import type { RegistrarClient } from '../../registrar/client.ts'
import { ResponseCache } from '../../registrar/response-cache.ts'
import type {
  DomainEntry,
  DomainInfo,
  Nameservers,
  Element as RegistrarElement,
} from '../../registrar/responses.ts'
import { isTransient, type ZoneWriter } from '../../zones/zone-writer.ts'
import type { RetryingWriter, WriteContext } from '../retrying-writer.ts'
import { chooseGiven, differenceOf } from './merge.ts'

export interface DoorSources {
  zones: ZoneWriter
  writer: RetryingWriter
  domains: DomainList
  registrar: RegistrarClient
  infos: ResponseCache<DomainInfo>
  nameservers: ResponseCache<Nameservers>
  givenZones: GivenZones
}

interface Command {
  /** As the registrar spells it. */
  name: string
  run: (params: Params, context: WriteContext) => Promise<Element[]>
}

/** The commands by their names in lower case. @throws {ErrorResponse | HttpError} each. */
export function commandsOf(sources: DoorSources): ReadonlyMap<string, Command> {
  const runs: [string, Command['run']][] = [
    ['domains.getList', (params, { caller }) => listDomains(params, caller, sources.domains)],
    ['domains.getInfo', (params, { caller }) => getInfo(params, caller, sources)],
    ['domains.getTldList', tldReader(sources.registrar)],
    ['domains.dns.getList', (params, { caller }) => getNameservers(params, caller, sources)],
    ['domains.dns.getHosts', (params, { caller }) => getHosts(params, caller, sources)],
    ['domains.dns.setHosts', (params, context) => setHosts(params, context, sources)],
  ]
  const commands = runs.map(([name, run]) => ({ name: `namecheap.${name}`, run }))
  return new Map(commands.map((command) => [command.name.toLowerCase(), command]))
}

const cached = { fresh: false, mayBeStale: isTransient }

async function listDomains(params: Params, caller: Caller, domains: DomainList) {
  const query = readListQuery(params)
  const isVisible = caller.domains ? (name: string) => allowsDomain(caller, name) : undefined
  const found = await domains.select(query, { isVisible, wantsFresh: false })
  const { page, pageSize: size } = query
  const describe = (entry: DomainEntry) => describeEntry(entry, caller)
  return results.listResult(found.domains.map(describe), { total: found.total, page, size })
}

const describeEntry = (entry: DomainEntry, { username }: Caller) => ({
  ID: entry.id,
  Name: entry.name,
  User: username,
  Created: dayOf(entry.created_on),
  Expires: dayOf(entry.expires_on),
  IsExpired: entry.is_expired ?? undefined,
  IsLocked: entry.is_locked ?? undefined,
  AutoRenew: entry.auto_renew ?? undefined,
  WhoisGuard: entry.whois_guard ?? undefined,
  IsPremium: entry.is_premium ?? undefined,
  IsOurDNS: entry.uses_registrar_dns ?? undefined,
})

const dayOf = (day: string | null) => (day === null ? undefined : results.writeDay(day))

async function getInfo(params: Params, caller: Caller, { infos, registrar }: DoorSources) {
  const domain = readDomain(params.require('DomainName', errors.domainMissing))
  if (typeof domain === 'string' || !allowsDomain(caller, domain.name)) throw results.unknownInfo()
  const { value: info } = await infos
    .read(domain.name, () => registrar.info(domain), cached)
    .catch(unless('domain_not_found', results.unknownInfo))
  const { status, id, owner, is_owner, is_premium, dns, rights } = info
  const isAll = rights.includes('all')
  return results.infoResult({
    attributes: {
      Status: status ?? undefined,
      ID: id,
      DomainName: info.name,
      OwnerName: owner ?? undefined,
      IsOwner: is_owner ?? undefined,
      IsPremium: is_premium ?? undefined,
    },
    created: dayOf(info.created_on),
    expires: dayOf(info.expires_on),
    years: info.years ?? undefined,
    privacy: describePrivacy(info.whois_guard),
    dns: {
      ProviderType: dns.provider ?? undefined,
      IsUsingOurDNS: dns.uses_registrar_dns ?? undefined,
      // A token that is limited to some records does not learn of others.
      HostCount: caller.records ? undefined : (dns.host_count ?? undefined),
      EmailType: dns.email_type === null ? undefined : results.shownEmailType(dns.email_type),
    },
    nameservers: dns.nameservers,
    rights: results.rightsElement(isAll, isAll ? [] : rights),
  })
}

function describePrivacy({ status, expires_on }: DomainInfo['whois_guard']): Element {
  const states = new Map([
    ['ENABLED', 'True'],
    ['DISABLED', 'False'],
    ['NOTPRESENT', 'NotAlloted'],
  ])
  const expires = dayOf(expires_on)
  return element('Whoisguard', { Enabled: states.get(status ?? '') }, [
    element('ID', {}, '0'),
    ...(expires === undefined ? [] : [element('ExpiredDate', {}, expires)]),
  ])
}

const tldCacheMs = 86_400_000

function tldReader(registrar: RegistrarClient): Command['run'] {
  const cache = new ResponseCache<Element[]>({
    ...registrar.cacheOptions(tldCacheMs),
    maxStaleMs: 30 * tldCacheMs,
  })
  const load = async () => [element('Tlds', {}, (await registrar.tlds()).map(toElement))]
  return async () => (await cache.read('', load, cached)).value
}

const toElement = ({ name, attributes, children, text }: RegistrarElement): Element =>
  element(name, attributes, children.length > 0 ? children.map(toElement) : text)

async function getNameservers(params: Params, caller: Caller, sources: DoorSources) {
  const { nameservers: cache, registrar } = sources
  const unknown = results.unknownZone.getList
  const domain = zoneOf(params, caller, unknown)
  const { value } = await cache
    .read(domain.name, () => registrar.nameservers(domain), cached)
    .catch(unless('domain_not_found', () => unknown(domain.name)))
  const isUsingOurDns = value.uses_registrar_dns ?? undefined
  const names = value.nameservers.map(({ name }) => name)
  return results.nameserversResult(domain.name, { isUsingOurDns, isPremium: false }, names)
}

async function getHosts(params: Params, caller: Caller, { zones, givenZones }: DoorSources) {
  const unknown = results.unknownZone.getHosts
  const domain = zoneOf(params, caller, unknown)
  const { value: zone } = await zones
    .read(domain, false)
    .catch(unless('domain_not_found', () => unknown(domain.name)))
  const rows = zone.rows.filter((row) => isVisible(row, domain, caller))
  const to = toWhom(domain, caller)
  if (hasRole(caller, 'editor')) await givenZones.add(to, knownOf(zone, rows))
  const spellings = spellingsOf(await givenZones.spelled(to), domain)
  return results.hostsResult(
    { domain: domain.name, emailType: zone.emailType, isUsingOurDns: zone.usesRegistrarDns },
    rows.map((row) => describeRow(row, domain, spellings)).sort(byTypeAndName),
  )
}

// A token that is limited to some records reads and writes those, whatever else it may read.
const isVisible = (row: Row, { name: domain }: Domain, caller: Caller) => {
  const { name, type } = toRecord(row, domain)
  return mayReadRrset({ ...caller, readsAll: false }, name, type)
}

const toWhom = ({ name }: Domain, { id }: Caller): GivenTo => ({ token: id, domain: name })

const knownOf = ({ domain, emailType }: Zone, rows: Row[]): KnownZone => ({
  emailType,
  records: rows.map((row) => {
    const { id: _, ...record } = toRecord(row, domain)
    return record
  }),
})

// lego writes the name `_acme-challenge.`, and removes its records by that.
const spellingsOf = (records: KnownRecord[], { name }: Domain) =>
  new Map(records.map((record) => [keyOf(toRow(record, name).row, name), record.spelling]))

const describeRow = (
  row: Row,
  { name: domain }: Domain,
  spellings: Map<string, string | undefined>,
) => ({
  // The registrar's own numbers are not kept; clients do not send them back.
  hostId: Number.parseInt(toRecord(row, domain).id.slice(0, 7), 16) + 1,
  name: spellings.get(keyOf(row, domain)) ?? (row.name || '@'),
  type: row.type,
  address: row.address,
  mxPref: row.mxPref || defaultMxPref,
  ttl: row.ttl || defaultTtl,
  ...results.titlesOf(row.type),
  isActive: true,
  isDdns: row.dynamic,
})

const byTypeAndName = (a: ReturnType<typeof describeRow>, b: ReturnType<typeof describeRow>) =>
  compare(a.type, b.type) || compare(a.name, b.name)

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Carries out what the list changes in the zone that the client knows, as one change. */
async function setHosts(params: Params, context: WriteContext, sources: DoorSources) {
  const { caller } = context
  const { writer, givenZones } = sources
  const unknown = results.unknownZone.setHosts
  const domain = zoneOf(params, caller, unknown)
  if (!hasRole(caller, 'editor')) throw errors.domainNotEditable()
  const rows = readSubmitted(params)
  const submitted: KnownZone = {
    emailType: params.get('EmailType')?.toUpperCase(),
    records: rows.map((row) => readRecord(row, domain)),
  }
  demandWithinRecords(submitted, caller)
  const to = toWhom(domain, caller)
  const { id, used, base } = await compareWithKnown(domain, submitted, { to, caller, sources })
  try {
    const { edit, indexes } = differenceOf(base, submitted, domain.name)
    const isChange = edit.present.length + edit.absent.length > 0 || edit.emailType !== undefined
    if (isChange)
      await writer
        .write(domain, edit, context)
        .catch(unless('domain_not_found', () => unknown(domain.name)))
        .catch(nameParameters(indexes.map((index) => rows[index]?.number ?? 0)))
    await givenZones.confirm(id)
  } catch (error) {
    // Otherwise the change may still be made, and the same list again must find out.
    const isRefused = error instanceof HttpError && error.status < 500
    if (isRefused || error instanceof errors.ErrorResponse) await givenZones.giveBack(id, to, used)
    throw error
  }
  return results.setHostsResult(domain.name)
}

async function compareWithKnown(
  domain: Domain,
  submitted: KnownZone,
  { to, caller, sources }: { to: GivenTo; caller: Caller; sources: DoorSources },
): Promise<{ id: number; used?: GivenZone; base: KnownZone }> {
  const { givenZones, zones } = sources
  const choose = (given: GivenZone[]) => chooseGiven(given, submitted, domain.name)
  const compared = await givenZones.replace(to, submitted, choose)
  if (compared) return compared
  if (!caller.records && !caller.token?.mayReplace) throw getHostsFirst()
  const { value: zone } = await zones.read(domain, true)
  const base = knownOf(
    zone,
    zone.rows.filter((row) => isVisible(row, domain, caller)),
  )
  return { id: await givenZones.submit(to, submitted, base), base }
}

const getHostsFirst = () =>
  new errors.ErrorResponse(
    '2016166',
    'This token was not given the zone in the last ten minutes: call domains.dns.getHosts first, so that records of others are kept',
  )

function readRecord({ number, name, type, address, ttl, mxPref }: Submitted, domain: Domain) {
  const bare = name.replace(/(?<=.)\.$/, '')
  const record: KnownRecord = {
    name: type === 'MXE' && bare === domain.name ? '@' : bare,
    type,
    address,
    ...(bare !== name && { spelling: name }),
  }
  if (ttl !== undefined) record.ttl = readNumber(`TTL${number}`, ttl)
  if (mxPref !== undefined && type === 'MX') record.mx_pref = readNumber(`MXPref${number}`, mxPref)
  return record
}

function readNumber(parameter: string, text: string): number {
  if (!/^[0-9]{1,9}$/.test(text)) throw errors.parameterInvalid(parameter, 'not a number')
  return Number(text)
}

function demandWithinRecords({ records }: KnownZone, caller: Caller) {
  const foreign = records.find(
    ({ name, type }) => !mayReadRrset({ ...caller, readsAll: false }, name, type),
  )
  if (!foreign) return
  const what = `${foreign.name} ${foreign.type}`.slice(0, 300)
  throw new errors.ErrorResponse('2030166', `This token may not write ${what}`)
}

/** For `catch`: throws the first fault of a record with the registrar's name of its parameter. */
const nameParameters =
  (numbers: number[]) =>
  (error: unknown): never => {
    const [fault] = error instanceof HttpError ? (error.errors ?? []) : []
    if (!fault) throw error
    const [, index, field = ''] = /^\/present\/(\d+)\/(\w+)$/.exec(fault.path) ?? []
    const parameter = index ? `${parameters.get(field)}${numbers[Number(index)]}` : 'EmailType'
    throw errors.parameterInvalid(parameter, fault.message)
  }

const parameters = new Map([
  ['name', 'HostName'],
  ['type', 'RecordType'],
  ['address', 'Address'],
  ['ttl', 'TTL'],
  ['mx_pref', 'MXPref'],
])

/** The domain of SLD and TLD, split as the registrar does: none of its labels after the first are of the SLD. */
function zoneOf(params: Params, caller: Caller, unknown: (name: string) => Error): Domain {
  const sld = params.require('SLD', errors.domainMissing).toLowerCase()
  const tld = params.require('TLD', errors.domainMissing).toLowerCase()
  const domain = readDomain(`${sld}.${tld}`)
  if (typeof domain === 'object' && !sld.includes('.') && allowsDomain(caller, domain.name))
    return domain
  throw unknown(`${sld}.${tld}`)
}

/** For `catch`: another error in the place of one with this code. */
const unless =
  (code: string, other: () => Error) =>
  (error: unknown): never => {
    throw error instanceof HttpError && error.code === code ? other() : error
  }
