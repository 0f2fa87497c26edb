import type { ApiTokens, Caller } from '@domains-and-files/auth'
import { type App, type HttpError, receiveBody } from '@domains-and-files/http'
import {
  type Envelope,
  errors,
  Params,
  renderRefusal,
  renderResult,
} from '@domains-and-files/registrar-sandbox/protocol'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { type Clock, delay } from '../../clock.ts'
import { registrarBusy } from '../../errors.ts'
import { toHttpError } from '../json-protocol.ts'
import { commandsOf, type DoorSources } from './commands.ts'

const url = '/integrations/registrar/xml.response'
const maxWaitMs = 25_000
const retryAfterSeconds = 15
// 150 texts of 2,500 characters, each byte percent-encoded.
const maxFormBytes = 2 * 1024 * 1024

type Dependencies = DoorSources & { tokens: ApiTokens; clock: Clock }

/**
 * The registrar's own XML API, for tools that know only that. An answer is the registrar's envelope in HTTP 200, errors
 * included; what is to be repeated later is HTTP 405, as the registrar refuses too many requests.
 */
export async function registerRegistrarDoor(app: App, dependencies: Dependencies) {
  const { tokens, clock } = dependencies
  const commands = commandsOf(dependencies)
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const params = paramsOf(request)
    const requested = (params.get('Command') ?? '').toLowerCase()
    const command = commands.get(requested)
    const envelope = envelopeOf(reply, { command: command?.name, requested })
    try {
      const caller = await authenticate(params, request, tokens)
      params.require('Command', errors.commandMissing)
      if (!command) throw commandUnknown()
      const running = command.run(params, { caller, requestId: request.id })
      running.catch(() => undefined) // After the time limit nobody waits for it.
      const result = await Promise.race([running, delay(clock, maxWaitMs)])
      if (!result) throw registrarBusy(retryAfterSeconds)
      return sendXml(reply, renderResult(envelope(), result))
    } catch (error) {
      return refuse(error instanceof Error ? error : new Error(String(error)), {
        request,
        reply,
        envelope,
      })
    }
  }
  await app.register(async (scope: App) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      '*',
      async (request: FastifyRequest) => new URLSearchParams(String(await receiveBody(request))),
    )
    scope.route({
      method: ['GET', 'POST'],
      url,
      // The credential is a parameter: `authenticate` reads it.
      config: { access: 'public' },
      bodyLimit: maxFormBytes,
      schema: { hide: true },
      handler,
      errorHandler: (error, request, reply) =>
        refuse(error, { request, reply, envelope: envelopeOf(reply) }),
    })
  })
}

// From the query and the form; a parameter of the form wins.
function paramsOf({ url, body }: FastifyRequest): Params {
  const start = url.indexOf('?')
  const query = new URLSearchParams(start < 0 ? '' : url.slice(start))
  return new Params(query, body instanceof URLSearchParams ? body : [])
}

const envelopeOf =
  (reply: FastifyReply, command: Partial<Envelope> = {}) =>
  (): Envelope => ({
    command: undefined,
    requested: '',
    ...command,
    milliseconds: Math.round(reply.elapsedTime),
    server: 'domain-service',
  })

async function authenticate(
  params: Params,
  request: FastifyRequest,
  tokens: ApiTokens,
): Promise<Caller> {
  const caller = await tokens.verify(params.require('ApiKey', errors.keyRefused), request.ip)
  if (typeof caller === 'string') throw errors.keyRefused()
  request.principal = { user: caller.username, token: caller.token?.name }
  return caller
}

const commandUnknown = () =>
  new errors.ErrorResponse('1019102', 'This command is not available here, so nothing was sent')

interface Refused {
  request: FastifyRequest
  reply: FastifyReply
  envelope: () => Envelope
}

function refuse(error: FastifyError | Error, { request, reply, envelope }: Refused) {
  if (error instanceof errors.ErrorResponse) {
    reply.problemCode = `registrar_protocol_${error.number}`
    return sendXml(reply, renderRefusal(envelope(), error))
  }
  const failure = toHttpError(error as FastifyError, request) // It reads what a FastifyError has beyond an Error only if present.
  reply.problemCode = failure.code
  if (!isTransient(failure)) return sendXml(reply, renderRefusal(envelope(), toRefusal(failure)))
  reply.headers({ 'retry-after': String(retryAfterSeconds), ...failure.headers })
  return reply.code(405).type('text/plain; charset=utf-8').send('Too many requests')
}

const sendXml = (reply: FastifyReply, body: string) =>
  reply.code(200).type('text/xml; charset=utf-8').send(Buffer.from(body))

const isTransient = ({ status, code }: HttpError) =>
  [429, 503, 504].includes(status) || code === 'registrar_unreachable'

/** The registrar's number for a problem. */
const toRefusal = ({ status, code, message }: HttpError) =>
  new errors.ErrorResponse(numbers.get(code) ?? (status < 500 ? '2011288' : '3050900'), message)

const numbers = new Map([
  ['domain_not_found', '2019166'],
  ['domain_not_editable', '2030166'],
  ['forbidden', '2030166'],
  ['dns_not_managed', '2030288'],
  ['too_many_records', '3013288'],
])
