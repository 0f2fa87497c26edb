import { hash, randomBytes } from 'node:crypto'
import { type ApiTokens, type Caller, callerOf, hasRole, Network } from '@domains-and-files/auth'
import { type App, type Clock, HttpError, validationFailed } from '@domains-and-files/http'
import { readDomain } from '../dns/domain-name.ts'
import { validateName } from '../dns/record.ts'
import type { AcmeChallenges } from './acme-challenges.ts'
import { type DomainFinder, type HostName, locateHostName } from './host-name.ts'
import {
  answerJsonError,
  type LenientBody,
  readLenientBody,
  takeAnyJson,
  textAt,
} from './json-protocol.ts'
import { contextOf } from './retrying-writer.ts'

interface Dependencies {
  clock: Clock
  challenges: AcmeChallenges
  domains: DomainFinder
  tokens: ApiTokens
}

/** The acme-dns protocol, which cert-manager, Caddy, lego and acme.sh speak. */
export async function registerAcmeDnsRoutes(app: App, dependencies: Dependencies) {
  await app.register(async (scope: App) => {
    takeAnyJson(scope)
    serveUpdate(scope, dependencies)
    serveRegister(scope, dependencies)
  })
}

/** POST /integrations/acme-dns/update: of the values set this way, the two newest stay. */
function serveUpdate(scope: App, { challenges, clock }: Dependencies) {
  scope.post(
    '/integrations/acme-dns/update',
    {
      config: { access: 'editor', enforcesRecordLimits: true },
      schema: { hide: true },
      errorHandler: answerJsonError(wordOf),
    },
    async (request, reply) => {
      const caller = callerOf(request)
      const body = readLenientBody(request.body)
      const host = registeredHost(caller)
      if (!host || textAt(body, 'subdomain') !== subdomainOf(host)) throw foreignSubdomain()
      const txt = textAt(body, 'txt') ?? ''
      if (!/^[A-Za-z0-9_-]{43}$/.test(txt))
        throw new HttpError(400, 'bad_txt', 'txt must be 43 base64url characters')
      await challenges.present(host, txt, contextOf(request, clock), {
        protocol: 'acme-dns',
        keep: 2,
      })
      return reply.type('application/json').send(JSON.stringify({ txt }))
    },
  )
}

/** POST /integrations/acme-dns/register, by a person's login. */
function serveRegister(scope: App, { domains, tokens }: Dependencies) {
  scope.post(
    '/integrations/acme-dns/register',
    { config: { access: 'editor' }, schema: { hide: true }, errorHandler: answerJsonError(wordOf) },
    async (request, reply) => {
      const caller = callerOf(request)
      if (caller.token)
        throw new HttpError(403, 'forbidden', 'An API token cannot register: log in')
      const body = readLenientBody(request.body)
      const name = textAt(body, 'name')
      if (!name) throw validationFailed([{ path: '/name', message: 'is missing' }])
      const networks = readNetworks(body)
      const host = await locateHostName(name, { domains, caller })
      if (!host)
        throw new HttpError(404, 'domain_not_found', `No domain of this account has ${name}`)
      const message = host.name.startsWith('*')
        ? 'must not be a wildcard'
        : validateName(host.name, host.domain.name)
      if (message) throw validationFailed([{ path: '/name', message }])
      const fulldomain = fqdnOf(host)
      const { text, token } = await tokens.create(caller, {
        name: tokenNameOf(fulldomain),
        domains: [host.domain.name],
        records: [{ name: host.name, types: ['TXT'] }],
        expires_in: hasRole(caller, 'admin') ? 0 : tenYears,
        ...(networks.length > 0 ? { networks } : {}),
      })
      return reply
        .code(201)
        .header('cache-control', 'no-store')
        .type('application/json')
        .send(
          JSON.stringify({
            username: token.id,
            password: text,
            fulldomain,
            subdomain: subdomainOf(host),
            allowfrom: networks,
          }),
        )
    },
  )
}

// Unique, since a name may be registered again.
const tokenNameOf = (fulldomain: string) =>
  `acme-dns ${fulldomain.slice(0, 80)} ${randomBytes(4).toString('hex')}`

// Renewals would stop when the token expires; it may write one TXT name only, and dies with its owner.
const tenYears = 10 * 365 * 86_400

// The token of a registration says where it may write, so nothing else has to be stored.
function registeredHost({ records, domains }: Caller): HostName | undefined {
  const [limit, ...others] = records ?? []
  const domain = readDomain(domains?.length === 1 ? (domains[0] ?? '') : '')
  if (!limit || others.length > 0 || limit.name.includes('*') || typeof domain === 'string')
    return undefined
  return { domain, name: limit.name }
}

const fqdnOf = ({ domain, name }: HostName) =>
  name === '@' ? domain.name : `${name}.${domain.name}`

// In the form of a UUID, as acme-dns has it.
const subdomainOf = (host: HostName) =>
  hash('sha256', fqdnOf(host), 'hex').replace(
    /^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/,
    '$1-$2-$3-$4-$5',
  )

function readNetworks(body: LenientBody): string[] {
  const networks = Network.array().max(100).optional().safeParse(body.values.get('allowfrom'))
  if (networks.success) return networks.data ?? []
  throw validationFailed([
    { path: '/allowfrom', message: 'must be a list of networks such as 192.0.2.0/24' },
  ])
}

// As acme-dns itself answers: there the subdomain is part of the credentials.
const foreignSubdomain = () =>
  new HttpError(401, 'unauthorized', 'subdomain is not the one of this registration', {
    headers: { 'www-authenticate': 'Bearer realm="domain-service"' },
  })

const wordOf = ({ status, code }: HttpError) => (status === 401 ? 'forbidden' : code)
