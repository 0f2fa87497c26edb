import { allowsDomain } from '@domains-and-files/auth'
import { type App, answers, listSchema, operations, pageQuery, paginate, uncheckedJson } from '@domains-and-files/http'
import { type ListQuery, listTypes, sortKeys } from '@domains-and-files/registrar-sandbox/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { RegistrarClient } from '../registrar/client.ts'
import type { ResponseCache } from '../registrar/response-cache.ts'
import type { Dependencies } from '../storage.ts'
import * as examples from './openapi-examples.ts'
import { oneOf } from './zone/record-input.ts'
import { AtDomain, setAgeHeader, wantsFresh } from './zone/zone-request.ts'

// Null where the registrar says nothing.
const date = z.nullable(z.iso.date()).meta({ description: 'a day; null: unknown', examples: ['2027-06-15'] })
const createdAt = z.nullable(z.iso.datetime()).meta({
  description: 'the beginning of `created_on` in UTC: the registrar tells no time of day',
  examples: ['2021-12-07T00:00:00.000Z'],
})

const flag = (example: boolean) => z.nullable(z.boolean()).meta({ examples: [example] })
const word = (example: string) => z.nullable(z.string()).meta({ examples: [example] })
const domainName = z.string().meta({ examples: [examples.domain] })
const nameserver = z.string().meta({ examples: ['dns1.registrar-servers.com'] })

const described = {
  name: domainName,
  id: z.string().meta({ examples: ['2000001'] }),
  created_on: date.meta({ examples: ['2021-12-07'] }),
  created_at: createdAt,
  expires_on: date,
  is_premium: flag(false),
}

const DomainEntryAnswer = z
  .object({
    ...described,
    is_expired: flag(false),
    is_locked: flag(false),
    auto_renew: flag(true),
    whois_guard: word('ENABLED').describe('as the registrar names it'),
    uses_registrar_dns: flag(true).describe('whether its records are at the registrar; null: unknown'),
  })
  .meta({ id: 'DomainEntry' })

const DomainPage = listSchema(undefined, 'domains', DomainEntryAnswer)

const DomainInfoAnswer = z
  .object({
    ...described,
    status: word('Ok'),
    owner: word('sandbox'),
    is_owner: flag(true),
    years: z.int().nullable(),
    whois_guard: z.object({ status: word('ENABLED'), expires_on: date }),
    dns: z.object({
      provider: word('FREE'),
      uses_registrar_dns: flag(true),
      host_count: z.int().nullable(),
      email_type: word('NONE'),
      nameservers: z.array(nameserver),
    }),
    rights: z.array(z.string()).meta({ examples: [['all']] }),
  })
  .meta({ id: 'DomainInfo' })

const NameserversAnswer = z
  .object({ domain: domainName, uses_registrar_dns: flag(true), nameservers: z.array(z.object({ name: nameserver })) })
  .meta({ id: 'Nameservers' })

const searchTerm = z.string('must be given once, with 1 to 70 characters').min(1).max(70).optional()

/** The values of `sort`, as in other lists: fields, `-` before them for descending order. */
const sorts = {
  name: 'NAME',
  '-name': 'NAME_DESC',
  expires_on: 'EXPIREDATE',
  '-expires_on': 'EXPIREDATE_DESC',
  created_on: 'CREATEDATE',
  '-created_on': 'CREATEDATE_DESC',
  created_at: 'CREATEDATE',
  '-created_at': 'CREATEDATE_DESC',
} as const satisfies Record<string, ListQuery['sortBy']>

const ListDomains = z
  .strictObject({
    list_type: oneOf(listTypes).default('ALL').describe('EXPIRING: within 30 days'),
    search_term: searchTerm.describe('a part of the name, in Unicode or A-labels'),
    search: searchTerm.describe('the same as `search_term`: one of the two'),
    ...pageQuery(20, 100),
    sort_by: oneOf(sortKeys).optional().describe('default: NAME'),
    sort: z
      .literal(Object.keys(sorts) as (keyof typeof sorts)[])
      .transform((field) => sorts[field])
      .optional()
      .describe('a field, `-` before it for descending order; or `sort_by`'),
  })
  .refine((query) => !query.search || !query.search_term, { path: ['search'], error: 'must not be beside search_term' })
  .refine((query) => !query.sort || !query.sort_by, { path: ['sort'], error: 'must not be beside sort_by' })

const shared = { access: 'viewer', tags: ['domains'], requestHeaders: examples.takesFresh } as const

const { listDomains } = operations({
  shared,
  listDomains: {
    summary: 'List the domains of the account',
    description:
      'From a list kept here and refreshed every few minutes, so a search costs no call to the registrar. Callers limited to some domains see only those. `list_type` and `sort_by` are case-insensitive. While a large account is read for the first time: 503 with Retry-After for callers who may not see all.',
    querystring: ListDomains,
    errors: examples.registrarFailures,
    ...answers(200, 'One page; empty past the end', DomainPage, examples.cacheHeaders),
  },
})

const ofOne = operations({
  shared: { ...shared, params: AtDomain, errors: examples.domainFailures },
  getDomain: {
    summary: 'Describe a domain',
    description: 'As the registrar describes it; null where it says nothing.',
    ...answers(200, 'The domain', DomainInfoAnswer, examples.cacheHeaders),
  },
  listNameservers: {
    summary: 'List the nameservers of a domain',
    description: 'As the registrar has them. They are changed at the registrar.',
    ...answers(200, 'Its nameservers', NameserversAnswer, examples.cacheHeaders),
  },
})

/** GET /api/domains, …/info and …/dns/nameservers. */
export function registerDomainRoutes(app: App, { registrar, domains, infos, nameservers }: Dependencies) {
  const path = '/api/domains'
  app.get(path, { ...listDomains, serializerCompiler: uncheckedJson }, async (request, reply) => {
    const { caller, query } = request
    const found = await domains.select(
      {
        listType: query.list_type,
        searchTerm: query.search ?? query.search_term,
        sortBy: query.sort ?? query.sort_by ?? 'NAME',
        page: query.page,
        pageSize: query.page_size,
      },
      {
        isVisible: caller.domains ? (name) => allowsDomain(caller, name) : undefined,
        wantsFresh: wantsFresh(request),
      },
    )
    setAgeHeader(reply, found)
    return { domains: found.domains.map(withInstant), pagination: paginate(query, found.total) }
  })
  app.get(`${path}/:domain/info`, ofOne.getDomain, async (request, reply) =>
    withInstant(await readCached(request, reply, infos, (domain, slot) => registrar.info(domain, slot))),
  )
  app.get(`${path}/:domain/dns/nameservers`, ofOne.listNameservers, async (request, reply) => ({
    domain: request.params.domain.name,
    ...(await readCached(request, reply, nameservers, (domain, slot) => registrar.nameservers(domain, slot))),
  }))
}

/** What the registrar says about the domain of the path; sets its age. */
async function readCached<Value>(
  request: FastifyRequest & { params: z.output<typeof AtDomain> },
  reply: FastifyReply,
  cache: ResponseCache<Value>,
  load: (...parameters: Parameters<RegistrarClient['info']>) => Promise<Value>,
): Promise<Value> {
  const { domain } = request.params
  const slot = { priority: 'read', callers: [request.caller.id, request.url] } as const
  const cached = await cache.read(domain.name, () => load(domain, slot), wantsFresh(request))
  setAgeHeader(reply, cached)
  return cached.value
}

/** A domain, or an entry of the list, as the API has it. */
export const withInstant = <Described extends { created_on: string | null }>(described: Described) => ({
  ...described,
  created_at: described.created_on && `${described.created_on}T00:00:00.000Z`,
})
