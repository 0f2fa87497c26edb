import {
  type App,
  AttemptLimit,
  answers,
  defineRoute,
  HttpError,
  tooManyFailures,
} from '@domains-and-files/http'
import { z } from 'zod'
import type { AuthContext } from '../auth-context.ts'
import { codeInvalid, loginFailed, notBegun, providerAway } from '../errors.ts'
import { isLoopback } from '../issuer-url.ts'
import { describeLogin, LoggedIn } from '../login/login.ts'

/** How to log in, and single sign-on, whose routes are 404 unless it is configured. */
export function registerOidcRoutes(app: App, context: AuthContext) {
  const limit = new AttemptLimit(maxAttempts, context.now)
  app.route(getMethods(context))
  app.route(beginLogin(context, limit))
  app.route(finishLogin(context, limit))
  app.route(redeemCode(context, limit))
}

/** Logins begun, callbacks and wrong codes, a minute, of one client network: each callback is a request to the provider. */
const maxAttempts = 300

const Methods = z
  .object({
    password: z.boolean(),
    oidc: z
      .object({ name: z.string().meta({ description: 'of the provider, for a button' }) })
      .nullable()
      .meta({ description: 'null: there is no single sign-on' }),
  })
  .meta({ id: 'LoginMethods', examples: [{ password: true, oidc: null }] })

/** GET /api/auth/methods */
const getMethods = ({ oidc, isPasswordLoginOn }: AuthContext) =>
  defineRoute({
    method: 'GET',
    url: '/api/auth/methods',
    config: { access: 'public' },
    schema: {
      operationId: 'getLoginMethods',
      summary: 'How to log in',
      description: 'With a password, at an OpenID provider, or both.',
      ...answers(200, 'Which ways there are', Methods),
    },
    handler: async () => ({
      password: isPasswordLoginOn,
      oidc: oidc ? { name: oidc.name } : null,
    }),
  })

const returnTo = 'must be an origin of CORS_ORIGIN, or http://127.0.0.1:port/ or http://[::1]:port/'

/** GET /api/auth/oidc/login */
const beginLogin = ({ sso, oidc }: AuthContext, limit: AttemptLimit) =>
  defineRoute({
    method: 'GET',
    url: '/api/auth/oidc/login',
    config: { access: 'public' },
    schema: {
      operationId: 'beginSingleSignOn',
      summary: 'Log in at the OpenID provider',
      description:
        'For a browser: it goes to the provider, and comes back to `return_to` with a one-time `code` in the query, which `POST /api/auth/oidc/token` takes within 60 seconds.',
      querystring: z.strictObject({
        return_to: z
          .string()
          .max(2000)
          .refine((text) => mayReturnTo(text, oidc?.returnOrigins ?? []), returnTo)
          .meta({ description: returnTo, examples: ['http://127.0.0.1:49152/'] }),
        challenge: z
          .string()
          .regex(/^[\w-]{43}$/, 'must be the SHA-256 of your verifier in base64url')
          .meta({
            description: 'S256 of your verifier (RFC 7636, 4.2)',
            examples: ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'],
          }),
      }),
      errors: [notConfigured(), providerAway(), tooManyFailures(60)],
      responses: { 302: { description: 'To the provider', headers: locationDoc } },
      response: { 302: z.undefined() },
    },
    handler: async (request, reply) => {
      const { return_to, challenge } = request.query
      const signOn = await need(sso)
      limit.check(request.ip)
      limit.add(request.ip)
      const { location, cookie } = await signOn.begin(new URL(return_to).href, challenge)
      return reply.header('set-cookie', cookie).headers(noStore).redirect(location, 302)
    },
  })

/** GET /api/auth/oidc/callback */
const finishLogin = ({ sso }: AuthContext, limit: AttemptLimit) =>
  defineRoute({
    method: 'GET',
    url: '/api/auth/oidc/callback',
    config: { access: 'public' },
    schema: {
      operationId: 'finishSingleSignOn',
      summary: 'The redirect URI of single sign-on',
      description: 'The provider sends the browser here; register it there.',
      // Providers add parameters of their own.
      querystring: z.looseObject({}),
      errors: [notConfigured(), notBegun(), loginFailed(), providerAway(), tooManyFailures(60)],
      responses: { 302: { description: 'To `return_to`, with a `code`', headers: locationDoc } },
      response: { 302: z.undefined() },
    },
    handler: async (request, reply) => {
      const { search } = new URL(request.url, 'http://localhost')
      const signOn = await need(sso)
      limit.check(request.ip)
      limit.add(request.ip)
      const { location, cookie } = await signOn.finish(search, request.headers.cookie)
      return reply.header('set-cookie', cookie).headers(noStore).redirect(location, 302)
    },
  })

const Redemption = z
  .strictObject({
    code: z.string().min(1).max(100),
    verifier: z.string().min(43).max(128).meta({ description: 'whose S256 was the `challenge`' }),
  })
  .meta({
    id: 'SingleSignOnCode',
    examples: [
      {
        code: 'b3RrgVnRBQ0iJbk8mNjwYxcJ5uC4fhq0a9ZqJ2pXzWY',
        verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
      },
    ],
  })

/** POST /api/auth/oidc/token */
const redeemCode = (context: AuthContext, limit: AttemptLimit) =>
  defineRoute({
    method: 'POST',
    url: '/api/auth/oidc/token',
    config: { access: 'public' },
    schema: {
      operationId: 'redeemSingleSignOnCode',
      summary: 'Exchange the code of single sign-on for a token',
      description: 'Each code counts once, for 60 seconds, also with a wrong verifier.',
      body: Redemption,
      errors: [notConfigured(), codeInvalid(), tooManyFailures(60)],
      ...answers(200, 'Your account, and a token', LoggedIn),
    },
    handler: async (request, reply) => {
      const signOn = await need(context.sso)
      limit.check(request.ip)
      const user = await signOn.redeem(request.body.code, request.body.verifier)
      if (!user) {
        limit.add(request.ip)
        throw codeInvalid()
      }
      request.log.info({ username: user.username }, 'logged in')
      reply.headers(noStore)
      return describeLogin(user, context)
    },
  })

// The address of the callback has a code, too.
const noStore = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

const locationDoc = { location: { description: 'Where to go', example: 'https://id.example.com/' } }

function need(sso: AuthContext['sso']) {
  if (!sso) throw notConfigured()
  return sso()
}

const notConfigured = () =>
  new HttpError(404, 'not_found', 'There is no single sign-on here: OIDC_ISSUER is not set')

/** Whether a browser may be sent there with a code: to an origin of CORS_ORIGIN, or a program on its own machine (RFC 8252, 7.3). */
function mayReturnTo(text: string, origins: readonly string[]): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  if (url.username || url.password || url.hash) return false
  const isProgram = url.protocol === 'http:' && url.port !== '' && url.hostname !== 'localhost'
  return origins.includes(url.origin) || (isProgram && isLoopback(url))
}
