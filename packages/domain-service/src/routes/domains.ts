import { allowsDomain, callerOf } from '@domains-and-files/auth'
import { type App, Pagination, pageQuery, paginate } from '@domains-and-files/http'
import { z } from 'zod'
import type { ListQuery, RegistrarClient } from '../registrar/client.ts'
import { ResponseCache } from '../registrar/response-cache.ts'
import type { DomainEntry, DomainInfo, Nameservers } from '../registrar/responses.ts'
import { isPassing } from '../zones/zone-writer.ts'
import {
  cacheHeaders,
  domainEntry,
  domainFailures,
  domainInfo,
  nameserversOf,
  registrarFailures,
  takesFresh,
} from './openapi-examples.ts'
import { AtDomain, domainOf, tellAge, wantsFresh } from './zone-request.ts'

const date = z.iso.date().nullable().meta({ description: 'a day; null: not told' })

const DomainEntryAnswer = z
  .object({
    name: z.string(),
    id: z.string(),
    created_on: date,
    expires_on: date,
    is_expired: z.boolean().nullable(),
    is_locked: z.boolean().nullable(),
    auto_renew: z.boolean().nullable(),
    whois_guard: z.string().nullable().meta({ description: 'as the registrar says' }),
    is_premium: z.boolean().nullable(),
    uses_registrar_dns: z
      .boolean()
      .nullable()
      .meta({ description: 'its records are kept here; null: not told' }),
  })
  .meta({ id: 'DomainEntry', examples: [domainEntry] })

const DomainInfoAnswer = z
  .object({
    name: z.string(),
    id: z.string(),
    status: z.string().nullable(),
    owner: z.string().nullable(),
    is_owner: z.boolean().nullable(),
    is_premium: z.boolean().nullable(),
    created_on: date,
    expires_on: date,
    years: z.int().nullable(),
    whois_guard: z.object({ status: z.string().nullable(), expires_on: date }),
    dns: z.object({
      provider: z.string().nullable(),
      uses_registrar_dns: z.boolean().nullable(),
      host_count: z.int().nullable(),
      email_type: z.string().nullable(),
      nameservers: z.array(z.string()),
    }),
    rights: z.array(z.string()),
  })
  .meta({ id: 'DomainInfo', examples: [domainInfo] })

const NameserversAnswer = z
  .object({
    domain: z.string(),
    uses_registrar_dns: z.boolean().nullable(),
    nameservers: z.array(z.object({ name: z.string() })),
  })
  .meta({ id: 'Nameservers', examples: [nameserversOf] })

const sortKeys = [
  'NAME',
  'NAME_DESC',
  'EXPIREDATE',
  'EXPIREDATE_DESC',
  'CREATEDATE',
  'CREATEDATE_DESC',
] as const
const listTypes = ['ALL', 'EXPIRING', 'EXPIRED'] as const

const ListDomains = z.strictObject({
  list_type: oneOf(listTypes)
    .default('ALL')
    .meta({ description: 'EXPIRING: those that the registrar says will expire soon' }),
  search_term: z
    .string('must be given once')
    .min(1, 'must have 1 to 70 characters')
    .max(70, 'must have 1 to 70 characters')
    .optional()
    .meta({ description: 'a part of the name' }),
  ...pageQuery(20, 100),
  sort_by: oneOf(sortKeys).default('NAME'),
})

/** The account's own list is told in pages of at least this many. */
const smallestPage = 10
const largestPage = 100

/** The routes of /api/domains, but for its records. Returns the caches that they read through, for who counts. */
export function registerDomainRoutes(app: App, registrar: RegistrarClient, cacheTtl: number) {
  const tags = ['domains']
  const options = registrar.cacheOptions(cacheTtl)
  const pages = new ResponseCache<{ domains: DomainEntry[]; total: number }>(options)
  const accounts = new ResponseCache<DomainEntry[]>({ ttlMs: 5 * 60_000, maxEntries: 50 })
  const infos = new ResponseCache<DomainInfo>(options)
  const nameservers = new ResponseCache<Nameservers>(options)

  app.get(
    '/api/domains',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listDomains',
        summary: 'List the domains of the account',
        description:
          'A user who is limited to some domains sees those. Values of `list_type` and `sort_by` are taken in any case.',
        tags,
        querystring: ListDomains,
        requestHeaders: takesFresh,
        errors: registrarFailures,
        responses: {
          200: {
            description: 'One page of the list; past its end, an empty one',
            headers: cacheHeaders,
          },
        },
        response: {
          200: z.object({ domains: z.array(DomainEntryAnswer), pagination: Pagination }).meta({
            examples: [
              { domains: [domainEntry], pagination: paginate({ page: 1, page_size: 20 }, 1) },
            ],
          }),
        },
      },
    },
    async (request, reply) => {
      const { query } = request
      const caller = callerOf(request)
      const wanted = {
        listType: query.list_type,
        searchTerm: query.search_term,
        sortBy: query.sort_by,
      }
      const how = { fresh: wantsFresh(request), mayBeStale: isPassing }
      const skipped = (query.page - 1) * query.page_size

      if (caller.domains) {
        const whole = await accounts.read(
          JSON.stringify(wanted),
          () => readAll(registrar, wanted),
          how,
        )
        const theirs = whole.value.filter((domain) => allowsDomain(caller, domain.name))
        tellAge(reply, whole)
        return {
          domains: theirs.slice(skipped, skipped + query.page_size),
          pagination: paginate(query, theirs.length),
        }
      }

      // Below the registrar's smallest page a larger one is read, a multiple of ours, and cut.
      const pageSize = query.page_size * Math.ceil(smallestPage / query.page_size)
      const page = { ...wanted, pageSize, page: Math.floor(skipped / pageSize) + 1 }
      const cached = await pages.read(JSON.stringify(page), () => registrar.listDomains(page), how)
      const offset = skipped % pageSize
      tellAge(reply, cached)
      return {
        domains: cached.value.domains.slice(offset, offset + query.page_size),
        pagination: paginate(query, cached.value.total),
      }
    },
  )

  app.get(
    '/api/domains/:domain/info',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'getDomain',
        summary: 'Describe a domain',
        description: 'What the registrar says of it; null is what it did not say.',
        tags,
        params: AtDomain,
        requestHeaders: takesFresh,
        errors: domainFailures,
        responses: { 200: { description: 'The domain', headers: cacheHeaders } },
        response: { 200: DomainInfoAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const how = { fresh: wantsFresh(request), mayBeStale: isPassing }
      const cached = await infos.read(domain.name, () => registrar.info(domain), how)
      tellAge(reply, cached)
      return cached.value
    },
  )

  app.get(
    '/api/domains/:domain/dns/nameservers',
    {
      config: { access: 'viewer' },
      schema: {
        operationId: 'listNameservers',
        summary: 'List the nameservers of a domain',
        tags,
        params: AtDomain,
        requestHeaders: takesFresh,
        errors: domainFailures,
        responses: { 200: { description: 'Its nameservers', headers: cacheHeaders } },
        response: { 200: NameserversAnswer },
      },
    },
    async (request, reply) => {
      const domain = domainOf(request, request.params.domain)
      const how = { fresh: wantsFresh(request), mayBeStale: isPassing }
      const cached = await nameservers.read(domain.name, () => registrar.nameservers(domain), how)
      tellAge(reply, cached)
      return { domain: domain.name, ...cached.value }
    },
  )
  return { pages, accounts, infos, nameservers }
}

async function readAll(
  registrar: RegistrarClient,
  wanted: Omit<ListQuery, 'page' | 'pageSize'>,
): Promise<DomainEntry[]> {
  const all: DomainEntry[] = []
  for (let page = 1; ; page++) {
    const { domains, total } = await registrar.listDomains({
      ...wanted,
      page,
      pageSize: largestPage,
    })
    all.push(...domains)
    if (domains.length === 0 || page * largestPage >= total) return all
  }
}

function oneOf<const Values extends readonly string[]>(values: Values) {
  return z
    .string('must be given once')
    .transform((value) => value.toUpperCase())
    .pipe(z.enum(values, `must be one of ${values.join(', ')}`))
    .meta({ enum: [...values] })
}
