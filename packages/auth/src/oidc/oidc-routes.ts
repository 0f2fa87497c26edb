import { type App, AttemptLimit, answers, operations, tooManyFailures } from '@domains-and-files/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { codeInvalid, loginFailed, notBegun, notConfigured, providerAway } from '../errors.ts'
import { answerLogin, LoggedIn } from '../login/account-routes.ts'
import type { Auth } from '../open-auth.ts'
import { isLoopback } from '../settings.ts'
import type { SingleSignOn } from './single-sign-on.ts'

/** Maximum logins begun, callbacks and wrong codes per minute and client network: a callback costs a provider request. */
const maxAttempts = 300

const Methods = z
  .object({
    password: z.boolean(),
    oidc: z
      .nullable(z.object({ name: z.string().describe('of the provider, for a button') }))
      .describe('null: there is no single sign-on'),
  })
  .meta({ id: 'LoginMethods', examples: [{ password: true, oidc: null }] })

const exampleChallenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const returnTo = 'must be an origin of CORS_ORIGIN, or http://127.0.0.1:port/ or http://[::1]:port/'

const example = {
  code: 'b3RrgVnRBQ0iJbk8mNjwYxcJ5uC4fhq0a9ZqJ2pXzWY',
  verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
}
const Redemption = z
  .strictObject({
    code: z.string().min(1).max(100),
    verifier: z.string().min(43).max(128).describe('whose S256 was the `challenge`'),
  })
  .meta({ id: 'SingleSignOnCode', examples: [example] })

const routesOf = (origins: readonly string[]) =>
  operations({
    shared: { access: 'public' },
    getLoginMethods: {
      summary: 'How to log in',
      description: 'With a password, at an OpenID provider, or both.',
      ...answers(200, 'Which ways there are', Methods),
    },
    beginSingleSignOn: {
      summary: 'Log in at the OpenID provider',
      description:
        'For a browser: it goes to the provider, and comes back to `return_to` with a one-time `code` in the query, which `POST /api/auth/oidc/token` takes within 60 seconds.',
      querystring: z.strictObject({
        return_to: z
          .string()
          .max(2000)
          .refine((text) => mayReturnTo(text, origins), returnTo)
          .meta({ description: returnTo, examples: ['http://127.0.0.1:49152/'] }),
        challenge: z
          .string()
          .regex(/^[\w-]{43}$/, 'must be the SHA-256 of your verifier in base64url')
          .meta({ description: 'S256 of your verifier (RFC 7636, 4.2)', examples: [exampleChallenge] }),
      }),
      errors: [notConfigured(), providerAway(), tooManyFailures(60)],
      ...answers(302, 'To the provider'),
    },
    finishSingleSignOn: {
      summary: 'The redirect URI of single sign-on',
      description: 'The provider sends the browser here; register it there.',
      // Providers add parameters of their own.
      querystring: z.looseObject({}),
      errors: [notConfigured(), notBegun(), loginFailed(), providerAway(), tooManyFailures(60)],
      ...answers(302, 'To `return_to`, with a `code`; for browsers also after a failure'),
    },
    redeemSingleSignOnCode: {
      summary: 'Exchange the code of single sign-on for a token',
      description:
        'Each code counts once, for 60 seconds, also with a wrong verifier. The code of a failed login gives its error.',
      body: Redemption,
      errors: [notConfigured(), codeInvalid(), loginFailed(), providerAway(), tooManyFailures(60)],
      ...answers(200, 'Your account, and a token', LoggedIn),
    },
  })

/** Routes for the login methods and single sign-on. Those of single sign-on answer 404 unless it is configured. */
export function registerOidcRoutes(app: App, context: Auth) {
  const { oidc, isPasswordLoginOn, monotonicClock } = context
  const routes = routesOf(oidc?.returnOrigins ?? [])
  const limit = new AttemptLimit(maxAttempts, monotonicClock)
  let loaded: Promise<SingleSignOn> | undefined
  const open = async ({ ip }: FastifyRequest) => {
    if (!oidc) throw notConfigured()
    limit.check(ip)
    // Loaded at the first login: the library takes 20 MB.
    loaded ??= import('./single-sign-on.ts').then(({ SingleSignOn }) => new SingleSignOn(context, oidc, app.log))
    return loaded
  }
  app.get('/api/auth/methods', routes.getLoginMethods, async () => ({
    password: isPasswordLoginOn,
    oidc: oidc ? { name: oidc.name } : null,
  }))
  app.get('/api/auth/oidc/login', routes.beginSingleSignOn, async (request, reply) => {
    const signOn = await open(request)
    limit.add(request.ip)
    return send(reply, await signOn.begin({ ...request.query, isBrowser: isBrowser(request) }))
  })
  app.get('/api/auth/oidc/callback', routes.finishSingleSignOn, async (request, reply) => {
    const signOn = await open(request)
    limit.add(request.ip)
    const { search } = new URL(request.url, 'http://localhost')
    const { cookie = '' } = request.headers
    return send(reply, await signOn.finish(search, cookie, isBrowser(request)))
  })
  app.post('/api/auth/oidc/token', routes.redeemSingleSignOnCode, async (request) => {
    const signOn = await open(request)
    const user = await signOn.redeem(request.body.code, request.body.verifier)
    if (!user) {
      limit.add(request.ip)
      throw codeInvalid()
    }
    return answerLogin(request, user, context)
  })
}

const isBrowser = ({ headers }: FastifyRequest) => headers.accept?.includes('text/html') ?? false

// The URL of the callback carries the provider's code, too: it must not be sent as referrer.
const send = (reply: FastifyReply, { location, cookie }: { location: string; cookie: string }) =>
  reply.headers({ 'set-cookie': cookie, 'referrer-policy': 'no-referrer' }).redirect(location, 302)

/** Whether a browser may carry a code to this URL: an origin of CORS_ORIGIN, or loopback (RFC 8252, 7.3). */
function mayReturnTo(text: string, origins: readonly string[]): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  if (url.username || url.password || url.hash) return false
  const isProgram = url.protocol === 'http:' && url.port !== '' && url.hostname !== 'localhost'
  return origins.includes(`${url.protocol}//${url.host}`) || (isProgram && isLoopback(url))
}
