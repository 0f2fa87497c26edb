import { type App, answers, listPage, listSchema, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import { callerOf } from '../access-control.ts'
import { shownLimits, shownRecords } from '../limits.ts'
import type { Auth } from '../open-auth.ts'
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
    domains: shownLimits.domains,
    folders: shownLimits.folders,
    records: shownRecords,
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Trust', examples: [example] })

const listTrustsSchema = {
  operationId: 'listTrusts',
  summary: 'List trusts',
  description: 'Which workloads may log in without secrets, with which rights; oldest first.',
  querystring: z.strictObject(pageQuery(50, 200)),
  ...answers(200, 'The trusts', listSchema('TrustList', 'trusts', TrustRecord)),
}

const addTrustSchema = {
  operationId: 'addTrust',
  summary: 'Trust a workload',
  description:
    'A workload with a token of this issuer, for this audience, with all these claims, gets a token of this service at `POST /api/auth/token`.',
  body: NewTrust.meta({ id: 'NewTrust', examples: [wanted] }),
  errors: [trustExists(wanted.name)],
  ...answers(201, 'The trust', TrustRecord),
}

const removeTrustSchema = {
  operationId: 'removeTrust',
  summary: 'Remove a trust',
  description: 'Its tokens end at once.',
  params: z.strictObject({ id: z.string().meta({ examples: [example.id] }) }),
  errors: [trustNotFound(example.id)],
  ...answers(204, 'Removed'),
}

/** Trusts: which workloads may exchange their tokens, for admins. */
export function registerTrustRoutes(app: App, { trusts, now }: Auth) {
  const config = { access: 'admin', needsLogin: true } as const
  const listed = { config: { access: 'admin' } as const, schema: listTrustsSchema }
  app.get('/api/trusts', listed, async (request) => {
    const seen = (await trusts.list()).filter((trust) => maySee(callerOf(request), trust))
    return listPage('trusts', seen, request.query, describe)
  })
  // Bytes: holds 100 domains and names of records.
  const added = { config, bodyLimit: 131_072, schema: addTrustSchema }
  app.post('/api/trusts', added, async (request, reply) => {
    refuse(findExcess(callerOf(request), request.body))
    const trust = await trusts.add(request.body, now())
    request.log.info({ trust: trust.name }, 'trust added')
    return reply.code(201).send(describe(trust))
  })
  app.delete('/api/trusts/:id', { config, schema: removeTrustSchema }, async (request, reply) => {
    const { id } = request.params
    await trusts.remove(id, (trust) => maySee(callerOf(request), trust))
    request.log.info({ trust_id: id }, 'trust removed')
    return reply.code(204).send(undefined)
  })
}

// An admin with limits sees only trusts within them.
const maySee = (caller: Caller, trust: Trust) => findExcess(caller, trust) === undefined

function describe(trust: Trust): z.input<typeof TrustRecord> {
  const { domains = null, folders = null, records = null, ...rest } = trust
  return { ...rest, domains, folders, records }
}
