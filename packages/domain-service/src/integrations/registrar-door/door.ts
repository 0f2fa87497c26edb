import { allowsDomain, type Caller } from '@domains-and-files/auth'
import { type App, delay, HttpError, requestProblem, takeBodies } from '@domains-and-files/http'
import { Params, readListQuery, responses } from '@domains-and-files/registrar-sandbox/protocol'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { readDomain } from '../../dns/domain-name.ts'
import { domainNotFound, registrarBusy } from '../../errors.ts'
import type { RegistrarClient } from '../../registrar/client.ts'
import { ResponseCache } from '../../registrar/response-cache.ts'
import type { Element as RegistrarElement } from '../../registrar/responses.ts'
import { contextOf, type IntegrationDependencies, maxWaitMs, retryAfterSeconds } from '../retrying-writer.ts'
import { type DoorContext, readHosts, writeHosts, zoneOf } from './hosts.ts'

// 150 texts of 2,500 characters, each byte percent-encoded.
const maxFormBytes = 2 * 1024 * 1024
// Several times those of a full zone.
const maxParameters = 5_000

const dayMs = 86_400_000

/**
 * The registrar's own XML API, for tools that know only that. A response is the registrar's envelope in HTTP 200, errors
 * included. Failures that may pass get HTTP 405, the registrar's status for too many requests.
 */
export async function registerRegistrarDoor(app: App, parts: IntegrationDependencies) {
  const commands = commandsOf(parts.registrar)
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const params = paramsOf(request)
    request.principal = await parts.auth.apiTokens.verify(params.require('ApiKey', responses.keyRefused), request.ip)
    params.require('Command', responses.commandMissing)
    const command = commands.get(params.command)
    if (!command)
      throw new responses.ErrorResponse('1019102', 'This command is not available here, so nothing was sent')
    const isAwaited = () => !reply.raw.writableEnded && !reply.raw.destroyed
    const context = { ...parts, ...contextOf(request, parts), isAwaited }
    const running = command.run(params, context)
    running.catch(() => undefined) // After the time limit nobody waits for it.
    const result = await Promise.race([running, delay(parts.clock, maxWaitMs)])
    if (!result) throw registrarBusy(retryAfterSeconds)
    return sendXml(reply, responses.renderAnswer(envelopeOf(params), result))
  }
  const envelopeOf = ({ command: requested }: Params): responses.Envelope => {
    return { command: commands.get(requested)?.name, requested, server: 'domain-service' }
  }
  const errorHandler = (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = error instanceof responses.ErrorResponse ? error : requestProblem(error, reply)
    if (refusal instanceof HttpError && isTransient(refusal)) {
      reply.headers({ 'retry-after': String(retryAfterSeconds), ...refusal.headers })
      return reply.code(405).type('text/plain; charset=utf-8').send('Too many requests')
    }
    reply.problemCode ??= 'registrar_protocol'
    const params = paramsOf(request)
    const answer = refusal instanceof HttpError ? toRefusal(refusal, params, commands.get(params.command)) : refusal
    return sendXml(reply, responses.renderAnswer(envelopeOf(params), answer))
  }
  await app.register(async (scope: App) => {
    takeBodies(scope, '*', (body) => parseForm(body.toString()))
    scope.route({
      method: ['GET', 'POST'],
      url: '/integrations/registrar/xml.response',
      // The credential is a parameter, which the handler verifies.
      config: { access: 'public' },
      bodyLimit: maxFormBytes,
      schema: { hide: true },
      handler,
      errorHandler,
    })
  })
}

// Anybody may send a form: Node parses one of 2 MiB in 13 s if it has a million parameters without a value.
function parseForm(text: string): URLSearchParams {
  if (text.split('&', maxParameters + 1).length <= maxParameters) return new URLSearchParams(text)
  throw new HttpError(413, 'body_too_large', `The form has more than ${maxParameters} parameters`)
}

// From the query and the form; a parameter of the form wins.
const paramsOf = ({ url, body }: FastifyRequest) =>
  new Params(new URL(url, 'http://door').searchParams, body instanceof URLSearchParams ? body : [])

const sendXml = (reply: FastifyReply, body: string) =>
  reply.code(200).type('text/xml; charset=utf-8').send(Buffer.from(body))

const isTransient = ({ status, code }: HttpError) =>
  [429, 503, 504].includes(status) || code === 'registrar_unreachable'

/** The registrar's refusal for a problem. */
function toRefusal({ status, code, message }: HttpError, { domain = '' }: Params, command: Command | undefined) {
  if (status === 401) return responses.keyRefused()
  if (code === 'domain_not_found' && command?.unknown) return command.unknown(domain)
  const number = numbers.get(code) ?? (status < 500 ? '2011288' : '3050900')
  return new responses.ErrorResponse(number, message)
}

const numbers = new Map([
  ['domain_not_found', '2019166'],
  ['domain_not_editable', '2030166'],
  ['forbidden', '2030166'],
  ['dns_not_managed', '2030288'],
  ['too_many_records', '3013288'],
])

interface Command {
  /** As the registrar spells it. */
  name: string
  /** @throws {ErrorResponse | HttpError} */
  run: (params: Params, context: DoorContext) => Promise<responses.Element[]>
  /** The refusal for a domain that is not in the account, or hidden from the caller. */
  unknown?: (domain: string) => responses.ErrorResponse
}

/** The commands by their names in lower case. */
function commandsOf(registrar: RegistrarClient) {
  const { getList, getHosts, setHosts } = responses.unknownZone
  const tlds = new ResponseCache<RegistrarElement>(registrar.cacheOptions(dayMs))
  const commands: Command[] = [
    { name: 'namecheap.domains.getList', run: listDomains },
    { name: 'namecheap.domains.getInfo', run: getInfo, unknown: responses.unknownInfo },
    {
      name: 'namecheap.domains.getTldList',
      run: async () => [toElement((await tlds.read('', () => registrar.tlds())).value)],
    },
    { name: 'namecheap.domains.dns.getList', run: getNameservers, unknown: getList },
    { name: 'namecheap.domains.dns.getHosts', run: readHosts, unknown: getHosts },
    { name: 'namecheap.domains.dns.setHosts', run: writeHosts, unknown: setHosts },
  ]
  return new Map(commands.map((command) => [command.name.toLowerCase(), command]))
}

async function listDomains(params: Params, { caller, domains }: DoorContext) {
  const query = readListQuery(params)
  const isVisible = caller.domains ? (name: string) => allowsDomain(caller, name) : undefined
  const found = await domains.select(query, { isVisible, wantsFresh: false })
  const { page, pageSize: size } = query
  const listed = found.domains.map((entry) => ({ ...entry, user: caller.username }))
  return responses.listResult(listed, { total: found.total, page, size })
}

const slotOf = ({ id }: Caller) => ({ priority: 'read', callers: [id] }) as const

async function getInfo(params: Params, { caller, infos, registrar }: DoorContext) {
  const name = params.require('DomainName', responses.domainMissing)
  const domain = readDomain(name)
  if (typeof domain === 'string' || !allowsDomain(caller, domain.name)) throw domainNotFound(name)
  const { value } = await infos.read(domain.name, () => registrar.info(domain, slotOf(caller)))
  // No token sees the owner's mailbox; a token that is limited to some records does not see the number of all.
  const hidden = caller.records ? ['EmailDetails', 'HostCount'] : ['EmailDetails']
  return [toElement(value.element, hidden)]
}

/** An element of the registrar without the attributes and children of these names. */
function toElement({ name, attributes, children, text }: RegistrarElement, hidden: string[] = []): responses.Element {
  const shown = Object.entries(attributes).filter(([key]) => !hidden.includes(key))
  const content = children.filter((child) => !hidden.includes(child.name))
  const inner = content.length > 0 ? content.map((child) => toElement(child, hidden)) : text
  return responses.element(name, Object.fromEntries(shown), inner)
}

async function getNameservers(params: Params, { caller, nameservers, registrar }: DoorContext) {
  const domain = zoneOf(params, caller)
  const { value } = await nameservers.read(domain.name, () => registrar.nameservers(domain, slotOf(caller)))
  const attributes = { Domain: domain.name, IsUsingOurDNS: value.uses_registrar_dns, IsPremiumDNS: false }
  const names = value.nameservers.map(({ name }) => name)
  return responses.nameserversResult(attributes, names)
}
