import { isIP, isIPv4 } from 'node:net'
import { mayWriteRrset } from '@domains-and-files/auth'
import { type App, HttpError, requestProblem } from '@domains-and-files/http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { canonicalHostName, type HostName, locateHostName } from './host-name.ts'
import { contextOf, type IntegrationDependencies, type WriteContext, writeRoute } from './retrying-writer.ts'

interface Update {
  hosts: string[]
  /** IPv4 or IPv6, at most one of each. */
  addresses: string[]
}

/** The dyndns2 protocol of ddclient, inadyn and home routers: one line of text per host, also for most errors. */
export function registerDyndns2Routes(app: App, parts: IntegrationDependencies) {
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const update = readUpdate(request)
    const text = typeof update === 'string' ? update : await answerUpdate(update, contextOf(request, parts), parts)
    return reply.type('text/plain').send(Buffer.from(text))
  }
  const options = { ...writeRoute, errorHandler: answerText }
  app.get('/integrations/nic/update', options, handler)
  // Clients fix this path.
  app.get('/nic/update', options, handler)
}

const maxHosts = 20

// The update, or the response to an invalid request. Other parameters, such as wildcard and mx, are ignored.
function readUpdate({ query, ip }: FastifyRequest): Update | string {
  const { hostname, myip } = query as Record<string, unknown> // Parsed by the framework, never an array of arrays.
  const hosts = listOf(hostname)
  if (hosts.length === 0) return 'notfqdn'
  if (hosts.length > maxHosts) return 'numhost'
  const given = listOf(myip)
  // An IPv4 address may be written as an IPv6 one.
  const addresses = (given.length > 0 ? given : [ip]).map((each) => each.replace(/^::ffff:(?=[0-9.]+$)/i, ''))
  const isPair = new Set(addresses.map((each) => isIP(each))).size === addresses.length
  const isValid = addresses.every((each) => isIP(each) !== 0 && !each.includes('%'))
  return isValid && isPair ? { hosts, addresses } : 'dnserr'
}

const listOf = (value: unknown) =>
  String(value ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')

async function answerUpdate(
  { hosts, addresses }: Update,
  context: WriteContext,
  parts: IntegrationDependencies,
): Promise<string> {
  const names = [...new Set(hosts.map(canonicalHostName))]
  const counted = names.filter((name) => name !== undefined)
  // Answered where it cannot be counted: reads go on then.
  if (!(await parts.hostUpdates.add(context.caller.username, counted).catch(() => true))) return 'abuse'
  const located = await Promise.all(
    names.map(async (name) =>
      name === undefined ? 'notfqdn' : ((await locateHostName(name, { ...parts, ...context })) ?? 'nohost'),
    ),
  )
  const updates = await Promise.all(
    located.map((host) => (typeof host === 'string' ? host : updateHost({ host, addresses }, context, parts))),
  )
  return hosts.map((host) => updates[names.indexOf(canonicalHostName(host))]).join('\n')
}

async function updateHost(
  { host, addresses }: { host: HostName; addresses: string[] },
  context: WriteContext,
  { writer }: IntegrationDependencies,
): Promise<string> {
  const mayWrite = (address: string) => mayWriteRrset(context.caller, host.name, typeOf(address))
  if (!addresses.every(mayWrite)) return '!yours'
  try {
    const effects = await Promise.all(
      addresses.map((address) => {
        const rrset = { name: host.name, type: typeOf(address), values: [address], defaultTtl }
        return writer.write(host.domain, { kind: 'setRrset', ...rrset }, { ...context, unlessDone: true })
      }),
    )
    const isChanged = effects.some(({ added, removed }) => added.length + removed.length > 0)
    return `${isChanged ? 'good' : 'nochg'} ${addresses.join(',')}`
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    return error.status >= 500 ? '911' : 'dnserr'
  }
}

/** Short, since home addresses change. */
const defaultTtl = 300

const typeOf = (address: string) => (isIPv4(address) ? 'A' : 'AAAA')

function answerText(error: FastifyError | HttpError, _request: FastifyRequest, reply: FastifyReply) {
  const failure = requestProblem(error, reply)
  const isUnauthorized = failure.status === 401
  const text = isUnauthorized ? 'badauth' : failure.status === 403 ? '!yours' : '911'
  // Routers and wget send their password only after a challenge. One header for each challenge: some clients read only
  // the first of a header.
  const bearer = failure.headers['www-authenticate'] ?? ''
  const challenges = { 'www-authenticate': ['Basic realm="domain-service", charset="UTF-8"', bearer] }
  return reply
    .code(isUnauthorized ? 401 : 200)
    .headers({ ...failure.headers, ...(isUnauthorized && challenges) })
    .type('text/plain')
    .send(Buffer.from(text))
}
