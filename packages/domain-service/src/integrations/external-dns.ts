import { allowsDomain, type Caller, requireRrsetWrites } from '@domains-and-files/auth'
import { type App, HttpError, validationFailed } from '@domains-and-files/http'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { EnsureEdit } from '../dns/edits/zone-edit.ts'
import type { RecordInput } from '../dns/record.ts'
import { recordTypeOf } from '../dns/record-types.ts'
import { type Rrset, readValue, toRrsets } from '../dns/zone.ts'
import { locateHostName } from './host-name.ts'
import { anyCase, moveFaults, parseBody } from './json-protocol.ts'
import { contextOf, type IntegrationDependencies, type WriteContext, writeRoute } from './retrying-writer.ts'

/** The webhook provider of external-dns. */
export function registerExternalDnsRoutes(scope: App, parts: IntegrationDependencies) {
  const webhook = new ExternalDnsWebhook(parts)
  const base = '/integrations/external-dns'
  const read = { config: { access: 'viewer' }, schema: { hide: true } } as const
  const root = { ...read, config: { ...read.config, optionalSlash: true } } as const
  scope.get(base, root, async (request, reply) => {
    const domains = await webhook.domainsOf(request.caller)
    return send(reply, { include: domains.map(({ name }) => name), exclude: [] })
  })
  scope.get(`${base}/records`, read, async (request, reply) => send(reply, await webhook.records(request.caller)))
  const write = { ...writeRoute, bodyLimit: maxChangesBytes }
  scope.post(`${base}/records`, write, async (request, reply) => {
    await webhook.apply(parseBody(Changes, request.body, maxValues), contextOf(request, parts))
    return reply.code(204).send()
  })
  const adjust = { ...read, bodyLimit: maxChangesBytes }
  scope.post(`${base}/adjustendpoints`, adjust, async (request, reply) =>
    send(reply, parseBody(Optional, request.body, maxValues).map(adjustEndpoint)),
  )
}

// All records of a domain, before and after.
const maxChangesBytes = 4 * 1024 * 1024

// A plan is for all domains: about 5,000 endpoints. Its controller ends at a 413.
const maxValues = 50_000

const send = (reply: FastifyReply, body: unknown) =>
  reply.type('application/external.dns.webhook+json;version=1').send(Buffer.from(JSON.stringify(body)))

class ExternalDnsWebhook {
  readonly #dependencies: IntegrationDependencies
  /** When each zone was read last, by domain: under a scarce quota, the oldest is read first. */
  readonly #readAt = new Map<string, number>()

  constructor(dependencies: IntegrationDependencies) {
    this.#dependencies = dependencies
  }

  /** The domains on the registrar's DNS that the caller may see: of EXTERNAL_DNS_DOMAINS, or else of the account. */
  async domainsOf(caller: Caller): Promise<Domain[]> {
    const { domains, config } = this.#dependencies
    const { externalDnsDomains: only } = config
    const listed = await domains.select(
      { listType: 'ALL', searchTerm: undefined, sortBy: 'NAME', page: 1, pageSize: 10_000 },
      { isVisible: (name) => allowsDomain(caller, name) && (only?.includes(name) ?? true), wantsFresh: false },
    )
    const found = listed.domains.map((each) => (each.uses_registrar_dns === false ? '' : readDomain(each.name)))
    return found.filter((domain) => typeof domain === 'object')
  }

  async records(caller: Caller): Promise<Endpoint[]> {
    const readAt = ({ name }: Domain) => this.#readAt.get(name) ?? 0
    const byAge = (await this.domainsOf(caller)).sort((a, b) => readAt(a) - readAt(b))
    const endpoints = await Promise.all(byAge.map((domain) => this.#recordsOf(domain, caller).catch(noneIfUnmanaged)))
    return endpoints.flat()
  }

  /** One write per domain. @throws {HttpError} 4xx only for what can never succeed: external-dns ends at it. */
  async apply(changes: Changes, context: WriteContext) {
    const edits = await this.#editsOf(changes, context.caller)
    const ends = await Promise.allSettled(
      edits.map(({ domain, edit, pointers }) =>
        // external-dns repeats its plan until all of it is done: the finished part must not cost calls.
        this.#dependencies.writer
          .write(domain, edit, { ...context, unlessDone: true })
          .catch(moveFaults((index, field) => pointers[index]?.(field))),
      ),
    )
    const errors = ends.flatMap((end) => (end.status === 'rejected' ? [toRetryable(end.reason)] : []))
    const worst = errors.find((error) => !(error instanceof HttpError && error.status < 500)) ?? errors[0]
    if (worst) throw worst
  }

  async #editsOf(changes: Changes, caller: Caller) {
    const edits = new Map<string, DomainEdit>()
    for (const key of ['delete', 'updateOld', 'create', 'updateNew'] as const)
      for (const [at, endpoint] of changes[key].entries()) {
        const pointer = `/${key}/${at}`
        const { domain, name } = await this.#locate(endpoint, { caller, pointer })
        const empty: DomainEdit = { domain, edit: { kind: 'ensure', present: [], absent: [] }, pointers: [] }
        const { edit, pointers } = edits.getOrInsert(domain.name, empty)
        const records = toRecords(endpoint, name)
        if (key === 'delete' || key === 'updateOld') edit.absent.push(...records)
        else {
          edit.present.push(...records)
          pointers.push(...records.map(pointerTo(pointer)))
        }
      }
    return [...edits.values()]
  }

  async #locate(endpoint: Endpoint, { caller, pointer }: { caller: Caller; pointer: string }) {
    const { domains, config } = this.#dependencies
    const { externalDnsDomains: only } = config
    const host = await locateHostName(endpoint.dnsName, { domains, caller })
    if (!host || (only && !only.includes(host.domain.name))) {
      const message = `${endpoint.dnsName} is in none of the domains to manage`
      throw validationFailed([{ path: `${pointer}/dnsName`, message }])
    }
    requireRrsetWrites(caller, [{ name: host.name, type: endpoint.recordType }])
    return host
  }

  async #recordsOf(domain: Domain, { id }: Caller): Promise<Endpoint[]> {
    const { value: zone, age } = await this.#dependencies.zones.read(domain, id)
    this.#readAt.set(domain.name, performance.now() - age)
    return toRrsets(zone)
      .filter(({ type }) => recordTypeOf(type).print) // Those that DNS has, too.
      .map((rrset) => toEndpoint(rrset, domain.name))
  }
}

interface DomainEdit {
  domain: Domain
  edit: EnsureEdit
  /** For each record in `present`: the JSON pointer of a field in the request. */
  pointers: ((field: string) => string)[]
}

// The records of an endpoint are its targets, in their order.
const pointerTo = (endpoint: string) => (_record: unknown, index: number) => (field: string) => {
  const known: Record<string, string> = { name: 'dnsName', type: 'recordType', ttl: 'recordTTL' }
  return `${endpoint}/${known[field] ?? `targets/${index}`}`
}

// A domain that has moved to other nameservers, or away, must not stop the others: external-dns ends at a 4xx.
function noneIfUnmanaged(error: unknown): Endpoint[] {
  if (error instanceof HttpError && unmanagedCodes.includes(error.code)) return []
  throw toRetryable(error)
}

const unmanagedCodes = ['dns_not_managed', 'domain_not_found', 'domain_not_editable']

// Failures that others can resolve may pass, such as record conflicts or a locked domain: external-dns must retry.
function toRetryable(error: unknown): unknown {
  if (!(error instanceof HttpError)) return error
  const passes = [...unmanagedCodes, 'too_many_records'].includes(error.code)
  if (!passes && ![409, 429].includes(error.status)) return error
  return new HttpError(503, error.code, error.message, { cause: error })
}

/** An endpoint of external-dns with all its fields, known here or not. */
type Endpoint = z.infer<typeof Endpoint>

const Endpoint = z.looseObject({
  dnsName: z.string('must be a string'),
  targets: z.array(z.string(), 'must be a list of strings').nullish(),
  recordType: z.string('must be a string'),
  recordTTL: z.number().nullish(),
})

const Endpoints = z.array(anyCase(Endpoint))

const Optional = Endpoints.nullish().transform((endpoints) => endpoints ?? [])

/** The changes of a plan; absent and null lists are empty. */
const Changes = anyCase(z.object({ create: Optional, updateOld: Optional, updateNew: Optional, delete: Optional }))

type Changes = z.infer<typeof Changes>

const toEndpoint = (rrset: Rrset, domain: string): Endpoint => ({
  dnsName: rrset.name === '@' ? domain : `${rrset.name}.${domain}`,
  targets: rrset.values,
  recordType: rrset.type,
  recordTTL: rrset.ttl,
})

/** An endpoint as the registrar would store it; fields that mean nothing here stay as they are. */
function adjustEndpoint(endpoint: Endpoint): Endpoint {
  const { dnsName, recordType, targets, recordTTL } = endpoint
  return {
    ...endpoint,
    dnsName: dnsName.toLowerCase().replace(/\.$/, ''),
    ...(targets ? { targets: targets.map((target) => adjustTarget(recordType, target)) } : {}),
    ...(recordTTL ? { recordTTL: Math.min(Math.max(Math.round(recordTTL), 60), 60_000) } : {}),
  }
}

/** The records of an endpoint, their names relative to its domain. */
function toRecords(endpoint: Endpoint, name: string): RecordInput[] {
  const { recordType: type, targets, recordTTL } = adjustEndpoint(endpoint)
  const ttl = recordTTL ? { ttl: recordTTL } : {}
  return (targets ?? []).map((target) => ({ name, type, ...readValue(type, target), ...ttl }))
}

function adjustTarget(type: string, target: string): string {
  // Its registry writes TXT with the quotes of a zone file.
  if (type.toUpperCase() === 'TXT') return /^"[^"]*"$/.test(target) ? target.slice(1, -1) : target
  return recordTypeOf(type.toUpperCase()).canonicalize(target)
}
