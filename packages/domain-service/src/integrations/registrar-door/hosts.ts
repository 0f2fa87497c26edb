import {
  allowsDomain,
  type Caller,
  hasRole,
  mayReadRrset,
  onlyProposes,
  requireRrsetWrites,
} from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import { type Params, readSubmitted, responses, type Submitted } from '@domains-and-files/registrar-sandbox/protocol'
import { type Domain, readDomain } from '../../dns/domain-name.ts'
import { applyEdit } from '../../dns/edits/apply-edit.ts'
import { defaultMxPref, defaultTtl, keyOf, parseRow, type Row } from '../../dns/record.ts'
import type { Zone } from '../../dns/zone.ts'
import { domainNotFound } from '../../errors.ts'
import type { ClientRecord, ClientZone, Comparison, GivenZone } from '../../ledger/given-zones.ts'
import type { IntegrationDependencies, WriteContext } from '../retrying-writer.ts'
import { chooseGiven, differenceOf } from './merge.ts'

/** A caller, and what the commands need. */
export interface DoorContext extends WriteContext, IntegrationDependencies {
  /** Whether the client still waits for the answer. */
  isAwaited: () => boolean
}

/** namecheap.domains.dns.getHosts: the records that the token may write; stores them as given, for `writeHosts`. */
export async function readHosts(params: Params, { caller, zones, givenZones }: DoorContext) {
  const domain = zoneOf(params, caller)
  const to = { token: caller.id, domain: domain.name }
  const isChanging = await zones.hasPending(domain)
  // An outdated zone will do: `writeHosts` carries out only what the client changes in it.
  const base = await zones.readOrKnown(domain, caller.id)
  const submitted = await givenZones.submitted(to)
  const zone = isChanging ? submitted.reduce(withUnfinished, base) : base
  const unlessSame = zone === base ? undefined : knownOf(base, caller)
  if (hasRole(caller, 'editor')) await givenZones.add(to, { zone: knownOf(zone, caller), base: unlessSame })
  const spellings = spellingsOf(submitted)
  const hosts = ownRows(zone, caller).map((row) => describeRow(row, spellings))
  const attributes = { Domain: domain.name, EmailType: zone.emailType, IsUsingOurDNS: zone.usesRegistrarDns }
  return responses.hostsResult(attributes, hosts)
}

// Shows an unfinished write: a client such as lego that was told to retry removes its record only if it sees the record.
// An earlier list, whose process may have died, hides no record of a later list, which may be acknowledged.
function withUnfinished(zone: Zone, given: GivenZone, index: number, all: GivenZone[]): Zone {
  if (!given.base) return zone
  const lists = all.slice(index + 1)
  const later = { records: lists.flatMap((each) => each.zone.records) }
  try {
    const { edit } = differenceOf(given.base, given.zone)
    const { absent } = differenceOf({ records: edit.absent }, later).edit
    return applyEdit(zone, { ...edit, absent })
  } catch {
    return zone // The write will be refused.
  }
}

// Here a token that is limited to some records reads and writes only those, even if it may read others.
const isOwn = (caller: Caller, { name, type }: { name: string; type: string }) =>
  mayReadRrset({ ...caller, readsAll: false }, name, type)

const ownRows = ({ rows }: Zone, caller: Caller) => rows.filter((row) => isOwn(caller, parseRow(row).record))

const knownOf = (zone: Zone, caller: Caller): ClientZone => ({
  emailType: zone.emailType,
  records: ownRows(zone, caller).map((row) => {
    const { id: _, ...record } = parseRow(row).record
    return record
  }),
})

// lego writes the name `_acme-challenge.`, and finds its records to remove by that spelling.
const spellingsOf = (submitted: GivenZone[]) =>
  new Map(
    submitted
      .flatMap(({ zone }) => zone.records.filter(({ spelling }) => spelling !== undefined))
      .map((record) => [keyOf(record), record.spelling]),
  )

const describeRow = (row: Row, spellings: ReturnType<typeof spellingsOf>) => ({
  // The registrar's own numbers are not kept; clients do not send them back.
  hostId: Number.parseInt(parseRow(row).record.id.slice(0, 7), 16) + 1,
  name: spellings.get(parseRow(row).key) ?? (row.name || '@'),
  type: row.type,
  address: row.address,
  isDdns: row.dynamic,
  mxPref: row.mxPref || defaultMxPref,
  ttl: row.ttl || defaultTtl,
})

/** Longer than the client waits: the outcome of the write is recorded all the same. */
const maxWaitMs = 600_000

/** namecheap.domains.dns.setHosts: carries out what the list changes in the zone that the client knows, as one change. */
export async function writeHosts(params: Params, context: DoorContext) {
  const { caller, writer, givenZones, isAwaited } = context
  const domain = zoneOf(params, caller)
  if (!hasRole(caller, 'editor')) throw responses.domainNotEditable()
  if (caller.writes === 'propose') throw onlyProposes()
  const rows = readSubmitted(params)
  const submitted: ClientZone = {
    emailType: params.get('EmailType')?.toUpperCase(),
    records: rows.map((row) => readRecord(row, domain)),
  }
  requireRrsetWrites(caller, submitted.records)
  const { id, used, base, mayRepeat } = await compareWithGiven(domain, submitted, context)
  try {
    const { edit, indexes } = differenceOf(base, submitted)
    const isChange = edit.present.length + edit.absent.length > 0 || edit.emailType !== undefined
    const numbers = indexes.map((index) => rows[index]?.number ?? 0)
    if (isChange)
      await writer.write(domain, edit, { ...context, maxWaitMs }).catch((error) => throwNamed(error, numbers))
    await givenZones.confirm(id, !mayRepeat && isAwaited())
  } catch (error) {
    // After other errors the change may still be made: the zone stays, so that a repeat of the list finds out.
    const isRefused = error instanceof HttpError && error.status < 500
    if (isRefused || error instanceof responses.ErrorResponse) await givenZones.giveBack(id, used)
    throw error
  }
  return responses.setHostsResult(domain.name)
}

async function compareWithGiven(
  domain: Domain,
  submitted: ClientZone,
  { caller, givenZones, zones }: DoorContext,
): Promise<Partial<Comparison> & { id: number; base: ClientZone }> {
  const to = { token: caller.id, domain: domain.name }
  const compared = await givenZones.replace(to, submitted, (given) => chooseGiven(given, submitted))
  if (compared?.isUnclear)
    throw getHostsFirst('A record of this list, which came before without an answer, was removed since')
  if (compared) return compared
  if (!caller.records && !caller.token?.mayReplace)
    throw getHostsFirst('This token was not given the zone in the last ten minutes')
  const base = knownOf((await zones.read(domain, caller.id, true)).value, caller)
  return { id: await givenZones.submit(to, submitted, base), base }
}

const getHostsFirst = (reason: string) =>
  new responses.ErrorResponse(
    '2016166',
    `${reason}: call domains.dns.getHosts first, so that records of others are kept`,
  )

function readRecord({ number, name, type, address, ttl, mxPref }: Submitted, domain: Domain) {
  const bare = name.replace(/(?<=.)\.$/, '')
  const record: ClientRecord = {
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
  if (!/^[0-9]{1,9}$/.test(text)) throw responses.parameterInvalid(parameter, 'not a number')
  return Number(text)
}

/** Throws the first fault of a record with the registrar's name of its parameter, other errors unchanged. */
function throwNamed(error: unknown, numbers: number[]): never {
  const [fault] = error instanceof HttpError ? (error.errors ?? []) : []
  if (!fault) throw error
  const [, index, field = ''] = /^\/present\/(\d+)\/(\w+)$/.exec(fault.path) ?? []
  const parameter = index ? `${parameters[field]}${numbers[Number(index)]}` : 'EmailType'
  throw responses.parameterInvalid(parameter, fault.message)
}

const parameters: Record<string, string> = {
  name: 'HostName',
  type: 'RecordType',
  address: 'Address',
  ttl: 'TTL',
  mx_pref: 'MXPref',
}

/**
 * The domain of SLD and TLD, split as at the registrar: the SLD is a single label.
 * @throws 404 `domain_not_found`
 */
export function zoneOf(params: Params, caller: Caller): Domain {
  const sld = params.require('SLD', responses.domainMissing).toLowerCase()
  const tld = params.require('TLD', responses.domainMissing).toLowerCase()
  const domain = readDomain(`${sld}.${tld}`)
  if (typeof domain === 'object' && !sld.includes('.') && allowsDomain(caller, domain.name)) return domain
  throw domainNotFound(`${sld}.${tld}`)
}
