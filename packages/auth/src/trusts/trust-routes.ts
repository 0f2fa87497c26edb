import {
  type App,
  defineRoute,
  HttpError,
  Pagination,
  pageQuery,
  paginate,
} from '@domains-and-files/http'
import { z } from 'zod'
import { loggedInCallerOf } from '../access-control.ts'
import { loginRequired } from '../errors.ts'
import { RecordLimit } from '../limits.ts'
import { findExcess } from '../rights.ts'
import { NewTrust, type Trust, type Trusts, trustExists, trustNotFound } from './trusts.ts'

interface Dependencies {
  trusts: Trusts
  now: () => number
}

const wanted = {
  name: 'deploy-site',
  issuer: 'https://token.actions.githubusercontent.com',
  audience: 'https://files.example.com',
  claims: { repository: 'acme/site', ref: 'refs/heads/main' },
  role: 'editor' as const,
  folders: ['site/'],
}
const example = {
  ...{ id: '5b1c8a52-0c1e-4f77-9a55-3f8e2b6d9c11', ...wanted, domains: null, records: null },
  created_at: '2027-01-15T09:30:00.000Z',
}

const TrustRecord = z
  .object({
    id: z.string(),
    ...NewTrust.shape,
    claims: z.record(z.string(), z.string()),
    domains: z.array(z.string()).nullable().meta({ description: 'null: all' }),
    folders: z.array(z.string()).nullable().meta({ description: 'null: all' }),
    records: z.array(RecordLimit).nullable().meta({ description: 'null: all' }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Trust', examples: [example] })

const TrustList = z.object({ trusts: z.array(TrustRecord), pagination: Pagination }).meta({
  id: 'TrustList',
  examples: [
    {
      trusts: [example],
      pagination: { page: 1, page_size: 50, total_items: 1, total_pages: 1 },
    },
  ],
})

/** Trusts: which workloads may exchange their tokens, for admins. */
export function registerTrustRoutes(app: App, dependencies: Dependencies) {
  app.route(listTrusts(dependencies))
  app.route(addTrust(dependencies))
  app.route(removeTrust(dependencies))
}

/** GET /api/trusts */
const listTrusts = ({ trusts }: Dependencies) =>
  defineRoute({
    method: 'GET',
    url: '/api/trusts',
    config: { access: 'admin' },
    schema: {
      operationId: 'listTrusts',
      summary: 'List trusts',
      description: 'Which workloads may log in without secrets, with which rights; oldest first.',
      tags: ['auth'],
      querystring: z.strictObject(pageQuery(50, 200)),
      responses: { 200: { description: 'The trusts' } },
      response: { 200: TrustList },
    },
    handler: async ({ query }, reply) => {
      reply.header('cache-control', 'no-store')
      const { page, page_size: size } = query
      const all = await trusts.list()
      const shown = all.slice((page - 1) * size, page * size).map(describe)
      return { trusts: shown, pagination: paginate(query, all.length) }
    },
  })

/** POST /api/trusts */
const addTrust = ({ trusts, now }: Dependencies) =>
  defineRoute({
    method: 'POST',
    url: '/api/trusts',
    config: { access: 'admin' },
    bodyLimit: 131_072, // 100 domains and names of records.
    schema: {
      operationId: 'addTrust',
      summary: 'Trust a workload',
      description:
        'A workload with a token of this issuer, for this audience, with all these claims, gets a token of this service at `POST /api/auth/token`.',
      tags: ['auth'],
      body: NewTrust.meta({ id: 'NewTrust', examples: [wanted] }),
      errors: [loginRequired(), trustExists(wanted.name)],
      responses: { 201: { description: 'The trust' } },
      response: { 201: TrustRecord },
    },
    handler: async (request, reply) => {
      const excess = findExcess(loggedInCallerOf(request), request.body)
      if (excess) throw new HttpError(403, 'forbidden', excess)
      const trust = await trusts.add(request.body, now())
      request.log.info({ trust: trust.name }, 'trust added')
      return reply.code(201).send(describe(trust))
    },
  })

/** DELETE /api/trusts/{id} */
const removeTrust = ({ trusts }: Dependencies) =>
  defineRoute({
    method: 'DELETE',
    url: '/api/trusts/:id',
    config: { access: 'admin' },
    schema: {
      operationId: 'removeTrust',
      summary: 'Remove a trust',
      description: 'Its tokens end at once.',
      tags: ['auth'],
      params: z.strictObject({ id: z.string().meta({ examples: [example.id] }) }),
      errors: [loginRequired(), trustNotFound(example.id)],
      responses: { 204: { description: 'Removed' } },
      response: { 204: z.undefined() },
    },
    handler: async (request, reply) => {
      loggedInCallerOf(request)
      await trusts.remove(request.params.id)
      request.log.info({ trust_id: request.params.id }, 'trust removed')
      return reply.code(204).send(undefined)
    },
  })

function describe(trust: Trust): z.input<typeof TrustRecord> {
  const { domains = null, folders = null, records = null, ...rest } = trust
  return { ...rest, domains, folders, records }
}
