import { type App, answers, listPage, listSchema, operations, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import * as errors from '../errors.ts'
import { describeLimits, RecordLimit, shownLimits } from '../limits.ts'
import type { Auth } from '../open-auth.ts'
import { mayManageTokens, refuse } from '../rights.ts'
import { type ApiToken, NewToken, tokenLimits } from './api-tokens.ts'
import { requireOwnLimits } from './token-format.ts'

const exampleId = '3f0e5a0c-8f3b-4b6e-9a51-6a3c1d2e4f50'
const exampleName = 'certificates of example.com'

const TokenRecord = z
  .object({
    id: z.string().meta({ examples: [exampleId] }),
    name: z.string().meta({ examples: [exampleName] }),
    hint: z.string().meta({ description: 'the last four characters', examples: ['qRxy'] }),
    owner: z.string().meta({ examples: ['admin'] }),
    role: tokenLimits.role.unwrap().nullable().describe('null: only `records`'),
    ...shownLimits,
    records: z.nullable(z.array(RecordLimit)).meta({ description: 'null: not limited', examples: [null] }),
    networks: z.nullable(z.array(z.string())).meta({ description: 'null: from everywhere', examples: [null] }),
    replace: z.boolean().describe("by the registrar's protocol: whether it may replace a zone that it has not read"),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().nullable().describe('null: never'),
    last_used_at: z.iso.datetime().nullable().describe('to the minute; null: not used yet'),
  })
  .meta({ id: 'ApiToken' })

const CreatedToken = TokenRecord.extend({
  token: z.string().meta({
    description: 'shown only now',
    examples: ['ds_8GQ3nV0pXhT5cWzK2mLrYbJ7dFsA9eUu0PqRxy'],
  }),
}).meta({ id: 'CreatedToken' })

const routes = operations({
  shared: { access: 'viewer', needsLogin: true },
  createToken: {
    summary: 'Create an API token',
    description:
      'For programs: long-lived, revocable, limited. Send it as `Authorization: Bearer`, as the password of `Authorization: Basic`, or as `X-Api-Key`. It never has more rights than its owner has at the time of use.',
    body: NewToken,
    errors: [errors.tokenExists(exampleName), errors.tooManyTokens(200)],
    ...answers(201, 'The token, shown only now', CreatedToken),
  },
  listTokens: {
    summary: 'List API tokens',
    description: 'Without their secrets, which are shown once, when a token is created.',
    querystring: z.strictObject({
      ...pageQuery(50, 200),
      owner: z.optional(z.string()).describe('a username; default: your own. Others: for admins without limits'),
    }),
    ...answers(200, 'The tokens, oldest first', listSchema('TokenList', 'tokens', TokenRecord)),
  },
  deleteToken: {
    summary: 'Revoke an API token',
    description: 'Your own; an admin without limits may revoke any. It stops working at once.',
    params: TokenRecord.pick({ id: true }).strict(),
    errors: [errors.tokenNotFound(exampleId)],
    ...answers(204, 'Revoked'),
  },
})

export function registerTokenRoutes(app: App, { apiTokens, audience }: Auth) {
  const bodyLimit = 131_072 // 100 domains, networks and names of records.
  app.post('/api/tokens', { ...routes.createToken, bodyLimit }, async (request) => {
    requireOwnLimits(audience, request.body)
    const { text, token } = await apiTokens.create(request.caller, request.body)
    request.log.info({ token_id: token.id, token_name: token.name }, 'API token created')
    return { ...describeToken(token), token: text }
  })
  app.get('/api/tokens', routes.listTokens, async ({ caller, query }) => {
    const { owner = caller.username } = query
    if (!mayManageTokens(caller, owner)) refuse('Only an admin without limits can list the tokens of others')
    return listPage('tokens', await apiTokens.list(owner), query, describeToken)
  })
  app.delete('/api/tokens/:id', routes.deleteToken, async (request) => {
    const { id } = request.params
    await apiTokens.remove(id, (owner) => mayManageTokens(request.caller, owner))
    request.log.info({ token_id: id }, 'API token revoked')
  })
}

export function describeToken(token: ApiToken): z.input<typeof TokenRecord> {
  const { records = null, networks = null, replace = false } = token
  const role = token.role ?? (records ? null : 'viewer')
  return { ...token, role, ...describeLimits(token), records, networks, replace }
}
