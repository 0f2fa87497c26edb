import {
  type App,
  AttemptLimit,
  eachAnswer,
  HttpError,
  receiveBody,
  tooManyFailures,
} from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { digestOf } from '../api-tokens/token-format.ts'
import { issuerAway, TokenRefusedError } from '../errors.ts'
import type { Auth } from '../open-auth.ts'
import type { Trust } from './trusts.ts'
import type { IssuerKeys, WorkloadToken } from './workload-token.ts'

const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
const jwtType = 'urn:ietf:params:oauth:token-type:jwt'
const formType = 'application/x-www-form-urlencoded'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token' as const

// The schema only documents. Faults need the OAuth error format (RFC 6749, 5.2), so the handler finds them.
const exampleForm = {
  grant_type: grantType,
  subject_token: 'eyJhbGciOi…',
  subject_token_type: jwtType,
}
const field = z.string().optional()
const ExchangeForm = z
  .looseObject({ grant_type: field, subject_token: field, subject_token_type: field })
  .meta({ id: 'TokenExchange', examples: [exampleForm] })

const exampleToken = {
  access_token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ0cnVzdDpzaXRlIn0.c2lnbmF0dXJl',
  ...{ token_type: 'Bearer', issued_token_type: accessTokenType, expires_in: 900 },
}
const Exchanged = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    issued_token_type: z.literal(accessTokenType),
    expires_in: z.int().describe('seconds, at most 900'),
  })
  .meta({ id: 'ExchangedToken', examples: [exampleToken] })

const OAuthError = z
  .object({
    error: z.enum(['invalid_request', 'invalid_grant', 'unsupported_grant_type']),
    error_description: z.string(),
  })
  .meta({
    id: 'OAuthError',
    description: 'RFC 6749, 5.2',
    examples: [{ error: 'invalid_grant', error_description: 'No trust admits this token' }],
  })
type OAuthError = z.infer<typeof OAuthError>

const exchangeSchema = {
  operationId: 'exchangeToken',
  summary: 'Exchange the token of a workload',
  description:
    'For CI without secrets: a token of the issuer of a trust becomes one of this service, with the rights of the trust. Each is exchanged once. RFC 8693.',
  consumes: [formType],
  body: ExchangeForm,
  errors: [issuerAway(), tooManyFailures(60)],
  ...eachAnswer({
    200: { description: 'A token for 15 minutes at most', body: Exchanged },
    400: { description: 'Why not, in the form of OAuth; the log says more.', body: OAuthError },
  }),
}

/** POST /api/auth/token: token exchange (RFC 8693). The only route with form bodies, and it accepts no other. */
export async function registerTokenExchange(app: App, context: Auth) {
  const limit = new AttemptLimit(maxRefused, context.now)
  let loaded: Promise<IssuerKeys> | undefined
  const loadKeys = () =>
    (loaded ??= import('./workload-token.ts').then(({ IssuerKeys }) => new IssuerKeys()))
  await app.register(async (scope: App) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(formType, readForm)
    const route = { config: { access: 'public' } as const, schema: exchangeSchema }
    scope.post('/api/auth/token', route, async (request, reply) => {
      reply.headers({ 'cache-control': 'no-store', pragma: 'no-cache' })
      limit.check(request.ip)
      const fault = faultOf(request.body)
      if (fault) return reply.code(400).send(fault)
      try {
        const { subject_token: token = '' } = request.body
        const { trust, subject } = await admit(token, context, await loadKeys())
        request.log.info({ trust: trust.name, subject }, 'token of a workload exchanged')
        const issued = context.sessions.issueForWorkload(trust, subject)
        return { ...issued, token_type: 'Bearer' as const, issued_token_type: accessTokenType }
      } catch (error) {
        if (error instanceof HttpError)
          request.log.warn({ err: error.cause }, 'issuer of a trust cannot be reached')
        if (!(error instanceof TokenRefusedError)) throw error
        limit.add(request.ip)
        request.log.info({ reason: error.message }, 'token of a workload refused')
        return reply.code(400).send(refused)
      }
    })
  })
}

// A parameter that is sent twice counts as missing (RFC 6749, 3.2).
async function readForm(request: FastifyRequest) {
  const fields = new URLSearchParams((await receiveBody(request)).toString())
  return Object.fromEntries(
    [...fields].map(([key, value]) => [key, fields.getAll(key).length === 1 ? value : '']),
  )
}

function faultOf(form: z.infer<typeof ExchangeForm>): OAuthError | undefined {
  if (form.grant_type && form.grant_type !== grantType)
    return { error: 'unsupported_grant_type', error_description: `Send ${grantType}` }
  const missing = (['grant_type', 'subject_token', 'subject_token_type'] as const).find(
    (field) => !form[field],
  )
  if (missing) return { error: 'invalid_request', error_description: `Send ${missing} once` }
  if (form.subject_token_type === jwtType) return undefined
  return { error: 'invalid_request', error_description: `subject_token_type must be ${jwtType}` }
}

/** Marks a token as used, and returns the trust that admits it: of several, the one with the most claims. */
async function admit(
  token: string,
  { trusts, oneTime, now }: Auth,
  keys: IssuerKeys,
): Promise<{ trust: Trust; subject: string }> {
  const issuer = keys.issuerOf(token)
  const ofIssuer = (await trusts.list()).filter((trust) => trust.issuer === issuer)
  if (ofIssuer.length === 0) throw new TokenRefusedError(`no trust has the issuer ${issuer}`)
  const audiences = ofIssuer.map(({ audience }) => audience)
  const verified = await keys.verify(token, { issuer, audiences, now: now() })
  const [trust] = ofIssuer
    .filter((each) => admits(each, verified))
    .sort((one, other) => Object.keys(other.claims).length - Object.keys(one.claims).length)
  const { subject, identity, endsAt } = verified
  if (!trust) throw new TokenRefusedError(`no trust has the audience and claims of ${subject}`)
  if (!(await oneTime.put(digestOf(`workload ${identity}`), '', endsAt)))
    throw new TokenRefusedError(`it was exchanged before, by ${subject}`)
  return { trust, subject }
}

const admits = ({ audience, claims }: Trust, token: WorkloadToken) =>
  token.audiences.includes(audience) &&
  Object.entries(claims).every(
    ([claim, wanted]) => Object.hasOwn(token.claims, claim) && token.claims[claim] === wanted,
  )

const refused: OAuthError = {
  error: 'invalid_grant',
  error_description: 'No trust admits this token, or it was used before: the log says why',
}

/** Maximum refused tokens per minute and client network. */
const maxRefused = 120
