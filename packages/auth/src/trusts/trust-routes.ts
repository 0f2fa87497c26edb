import {
  type App,
  answers,
  defineRoute,
  listSchema,
  pageOf,
  pageQuery,
  paginate,
} from '@domains-and-files/http'
import { z } from 'zod'
import { callerOf, loggedInCallerOf } from '../access-control.ts'
import type { AuthContext } from '../auth-context.ts'
import { loginRequired } from '../errors.ts'
import { RecordLimit } from '../limits.ts'
import { type Caller, findExcess, refuse } from '../rights.ts'
import { NewTrust, type Trust, trustExists, trustNotFound } from './trusts.ts'

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

const TrustList = listSchema('TrustList', 'trusts', TrustRecord)

/** Trusts: which workloads may exchange their tokens, for admins. */
export function registerTrustRoutes(app: App, context: AuthContext) {
  app.route(listTrusts(context))
  app.route(addTrust(context))
  app.route(removeTrust(context))
}

/** GET /api/trusts */
const listTrusts = ({ trusts }: AuthContext) =>
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
      ...answers(200, 'The trusts', TrustList),
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'no-store')
      const { query } = request
      const seen = (await trusts.list()).filter((trust) => maySee(callerOf(request), trust))
      return {
        trusts: pageOf(seen, query).map(describe),
        pagination: paginate(query, seen.length),
      }
    },
  })

/** POST /api/trusts */
const addTrust = ({ trusts, now }: AuthContext) =>
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
      ...answers(201, 'The trust', TrustRecord),
    },
    handler: async (request, reply) => {
      refuse(findExcess(loggedInCallerOf(request), request.body))
      const trust = await trusts.add(request.body, now())
      request.log.info({ trust: trust.name }, 'trust added')
      return reply.code(201).send(describe(trust))
    },
  })

/** DELETE /api/trusts/{id} */
const removeTrust = ({ trusts }: AuthContext) =>
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
      ...answers(204, 'Removed'),
    },
    handler: async (request, reply) => {
      const caller = loggedInCallerOf(request)
      const { id } = request.params
      await trusts.remove(id, (trust) => maySee(caller, trust))
      request.log.info({ trust_id: id }, 'trust removed')
      return reply.code(204).send(undefined)
    },
  })

// To an admin with limits there are only trusts within them.
const maySee = (caller: Caller, trust: Trust) => findExcess(caller, trust) === undefined

function describe(trust: Trust): z.input<typeof TrustRecord> {
  const { domains = null, folders = null, records = null, ...rest } = trust
  return { ...rest, domains, folders, records }
}
