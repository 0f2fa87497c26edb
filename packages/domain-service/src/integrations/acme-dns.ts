import { hash, randomBytes } from 'node:crypto'
import { type Caller, hasRole, Network, onlyProposes } from '@domains-and-files/auth'
import { type App, forbidden, HttpError, validationFailed } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { readDomain } from '../dns/domain-name.ts'
import { validateName } from '../dns/record.ts'
import type { Dependencies } from '../storage.ts'
import type { AcmeChallenges } from './acme-challenges.ts'
import { expectHostName, type HostName } from './host-name.ts'
import { answerJsonError, anyCase, parseBody } from './json-protocol.ts'
import { contextOf, writeRoute } from './retrying-writer.ts'

/** The acme-dns protocol, which cert-manager, Caddy, lego and acme.sh speak. */
export function registerAcmeDnsRoutes(scope: App, challenges: AcmeChallenges, parts: Dependencies) {
  const errorHandler = answerJsonError(({ status, code }) => (status === 401 ? 'forbidden' : code))
  const update = { ...writeRoute, errorHandler }
  scope.post('/integrations/acme-dns/update', update, async (request) => {
    const context = contextOf(request, parts)
    const { subdomain, txt } = parseBody(Update, request.body)
    const host = registeredHost(context.caller)
    // As acme-dns itself answers: there the subdomain is part of the credentials.
    const headers = { 'www-authenticate': 'Bearer realm="domain-service"' }
    if (!host || subdomain !== subdomainOf(host))
      throw new HttpError(401, 'unauthorized', 'subdomain is not the one of this registration', { headers })
    if (!/^[A-Za-z0-9_-]{43}$/.test(txt)) throw new HttpError(400, 'bad_txt', 'txt must be 43 base64url characters')
    await challenges.present(host, txt, context, { protocol: 'acme-dns', keep: 2 })
    return { txt }
  })
  scope.post('/integrations/acme-dns/register', update, async (request, reply) => {
    const registration = await registerName(request, parts)
    return reply.code(201).header('cache-control', 'no-store').send(registration)
  })
}

// What is no text fails as another text does.
const text = z.string().catch('')
const Update = anyCase(z.object({ subdomain: text, txt: text }))

const networks = 'must be a list of networks such as 192.0.2.0/24'
const Registration = anyCase(
  z.object({ name: z.string().min(1), allowfrom: z.array(Network, networks).max(100).default([]) }),
)

/** Makes a token that is limited to the TXT records of one name. */
async function registerName(request: FastifyRequest, { domains, auth }: Dependencies) {
  const { caller } = request
  if (caller.token) throw forbidden('An API token cannot register: log in')
  if (caller.writes) throw onlyProposes()
  const { name, allowfrom } = parseBody(Registration, request.body)
  const host = await expectHostName(name, { domains, caller })
  const message = host.name.startsWith('*') ? 'must not be a wildcard' : validateName(host.name, host.domain.name)
  if (message) throw validationFailed([{ path: '/name', message }])
  const fulldomain = fqdnOf(host)
  const { text: password, token } = await auth.apiTokens.create(caller, {
    // Unique, since a name may be registered again.
    name: `acme-dns ${fulldomain.slice(0, 80)} ${randomBytes(4).toString('hex')}`,
    domains: [host.domain.name],
    records: [{ name: host.name, types: ['TXT'] }],
    expires_in: hasRole(caller, 'admin') ? 0 : tenYears,
    ...(allowfrom.length > 0 ? { networks: allowfrom } : {}),
  })
  return { username: token.id, password, fulldomain, subdomain: subdomainOf(host), allowfrom }
}

// Renewals would stop when the token expires; it may write one TXT name only, and dies with its owner.
const tenYears = 10 * 365 * 86_400

// The token of a registration says where it may write, so nothing else has to be stored.
function registeredHost({ records, domains }: Caller): HostName | undefined {
  const [limit, ...others] = records ?? []
  const domain = readDomain(domains?.length === 1 ? (domains[0] ?? '') : '')
  if (!limit || others.length > 0 || limit.name.includes('*') || typeof domain === 'string') return undefined
  return { domain, name: limit.name }
}

const fqdnOf = ({ domain, name }: HostName) => (name === '@' ? domain.name : `${name}.${domain.name}`)

// In the form of a UUID, as acme-dns has it.
const subdomainOf = (host: HostName) =>
  hash('sha256', fqdnOf(host), 'hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')
