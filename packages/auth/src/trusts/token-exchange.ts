import {
  type App,
  AttemptLimit,
  bodyTooLarge,
  type Fault,
  HttpError,
  operations,
  takeBodies,
  tooManyFailures,
  unsupportedMediaType,
} from '@domains-and-files/http'
import { z } from 'zod'
import { digestOf } from '../api-tokens/token-format.ts'
import * as errors from '../errors.ts'
import { LoggedIn } from '../login/account-routes.ts'
import type { Auth } from '../open-auth.ts'
import { listTrusts } from './trusts.ts'
import type { WorkloadTokens } from './workload-token.ts'

const formType = 'application/x-www-form-urlencoded'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token' as const

const ExchangeForm = z
  .looseObject({
    grant_type: z.literal('urn:ietf:params:oauth:grant-type:token-exchange'),
    subject_token: z
      .string()
      .min(1)
      .meta({ examples: ['eyJhbGciOi…'] }),
    subject_token_type: z.literal('urn:ietf:params:oauth:token-type:jwt'),
  })
  .meta({ id: 'TokenExchange' })

const Exchanged = LoggedIn.omit({ user: true })
  .extend({ issued_token_type: z.literal(accessTokenType) })
  .meta({ id: 'ExchangedToken' })

const OAuthError = z
  .object({
    error: z.enum(['invalid_grant', 'invalid_request', 'unsupported_grant_type']),
    error_description: z.string().meta({ examples: ['No trust admits this token'] }),
  })
  .meta({ id: 'OAuthError', description: 'RFC 6749, 5.2' })

const routes = operations({
  shared: { access: 'public' },
  exchangeToken: {
    summary: 'Exchange the token of a workload',
    description:
      'For CI without secrets: a token of the issuer of a trust becomes one of this service, with the rights of the trust. Each is exchanged once. RFC 8693.',
    consumes: [formType],
    body: ExchangeForm,
    errors: [errors.issuerAway(), tooManyFailures(60), bodyTooLarge(), unsupportedMediaType([formType])],
    responses: {
      200: { description: 'A token for 15 minutes at most', body: Exchanged },
      400: { description: 'Why not, in the form of OAuth; the log says more.', body: OAuthError },
    },
  },
})

/** POST /api/auth/token: token exchange (RFC 8693). The only route with form bodies, and it accepts no other. */
export async function registerTokenExchange(app: App, { database, oneTime, sessions, now, monotonicClock }: Auth) {
  const limit = new AttemptLimit(maxRefused, monotonicClock)
  let loaded: Promise<WorkloadTokens> | undefined
  const load = () => (loaded ??= import('./workload-token.ts').then(({ WorkloadTokens }) => new WorkloadTokens()))
  await app.register(async (scope: App) => {
    takeBodies(scope, formType, readForm)
    // In the form of OAuth (RFC 6749, 5.2).
    scope.setErrorHandler((error, request, reply) => {
      if (error instanceof errors.TokenRefusedError) {
        limit.add(request.ip)
        request.log.info({ reason: error.message }, 'token of a workload refused')
        return reply.code(400).send(refused)
      }
      if (error instanceof HttpError && error.errors) return reply.code(400).send(faultOf(error.errors))
      throw error
    })
    scope.post('/api/auth/token', routes.exchangeToken, async (request, reply) => {
      reply.header('pragma', 'no-cache')
      limit.check(request.ip)
      const workloads = await load()
      const { subject_token: token } = request.body
      const { trust, subject, identity, endsAt } = await workloads.verify(token, await listTrusts(database), now())
      if (!(await oneTime.put(digestOf(`workload ${identity}`), '', endsAt)))
        throw new errors.TokenRefusedError(`it was exchanged before, by ${subject}`)
      request.log.info({ trust: trust.name, subject }, 'token of a workload exchanged')
      const issued = sessions.issueForWorkload(trust, subject)
      return { ...issued, token_type: 'Bearer' as const, issued_token_type: accessTokenType }
    })
  })
}

// A parameter that is sent twice counts as missing (RFC 6749, 3.2).
function readForm(body: Buffer) {
  const fields = [...new URLSearchParams(body.toString())]
  const named = Map.groupBy(fields, ([name]) => name)
  return Object.fromEntries(fields.filter(([name]) => named.get(name)?.length === 1))
}

function faultOf(faults: Fault[]): z.infer<typeof OAuthError> {
  const isOther = faults.some(({ path, message }) => path === '/grant_type' && message !== 'is missing')
  return {
    error: isOther ? 'unsupported_grant_type' : 'invalid_request',
    error_description: faults.map(({ path, message }) => `${path.slice(1)} ${message}`).join('; '),
  }
}

const refused: z.infer<typeof OAuthError> = {
  error: 'invalid_grant',
  error_description: 'No trust admits this token, or it was used before: the log says why',
}

/** Maximum refused tokens per minute and client network. */
const maxRefused = 120
