import type { Caller } from '@domains-and-files/auth'
import { type App, delay, HttpError, receiveBody, requestProblem } from '@domains-and-files/http'
import { type Envelope, errors, Params, renderAnswer } from '@domains-and-files/registrar-sandbox/protocol'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { registrarBusy } from '../../errors.ts'
import type { IntegrationDependencies } from '../retrying-writer.ts'
import { commandsOf } from './commands.ts'

const url = '/integrations/registrar/xml.response'
const server = 'domain-service'
const maxWaitMs = 25_000
const retryAfterSeconds = 15
// 150 texts of 2,500 characters, each byte percent-encoded.
const maxFormBytes = 2 * 1024 * 1024
// Several times those of a full zone.
const maxParameters = 5_000

/**
 * The registrar's own XML API, for tools that know only that. A response is the registrar's envelope in HTTP 200, errors
 * included. Failures that may pass get HTTP 405, the registrar's status for too many requests.
 */
export async function registerRegistrarDoor(app: App, parts: IntegrationDependencies) {
  const commands = commandsOf(parts.registrar)
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const params = paramsOf(request)
    const caller = await authenticate(params, request, parts)
    params.require('Command', errors.commandMissing)
    const command = commands.get(params.command)
    if (!command) throw commandUnknown()
    const { raw } = reply
    const isAwaited = () => !raw.writableEnded && !raw.destroyed
    const context = { ...parts, caller, requestId: request.id, isAwaited }
    const running = command.run(params, context).catch((error: unknown) => {
      const isUnknown = error instanceof HttpError && error.code === 'domain_not_found'
      throw (isUnknown && command.unknown?.(params.domain ?? '')) || error
    })
    running.catch(() => undefined) // After the time limit nobody waits for it.
    const result = await Promise.race([running, delay(parts.clock, maxWaitMs)])
    if (!result) throw registrarBusy(retryAfterSeconds)
    return sendXml(reply, renderAnswer(envelopeOf(request, reply), result))
  }
  const envelopeOf = (request: FastifyRequest, { elapsedTime }: FastifyReply): Envelope => {
    const { command: requested } = paramsOf(request)
    const milliseconds = Math.round(elapsedTime)
    return { command: commands.get(requested)?.name, requested, milliseconds, server }
  }
  const errorHandler = (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = error instanceof errors.ErrorResponse ? error : requestProblem(error, request)
    if (refusal instanceof HttpError && isTransient(refusal)) {
      reply.problemCode = refusal.code
      reply.headers({ 'retry-after': String(retryAfterSeconds), ...refusal.headers })
      return reply.code(405).type('text/plain; charset=utf-8').send('Too many requests')
    }
    reply.problemCode = refusal instanceof HttpError ? refusal.code : 'registrar_protocol'
    const answer = refusal instanceof HttpError ? toRefusal(refusal) : refusal
    return sendXml(reply, renderAnswer(envelopeOf(request, reply), answer))
  }
  await app.register(async (scope: App) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', async (request: FastifyRequest) => parseForm(String(await receiveBody(request))))
    scope.route({
      method: ['GET', 'POST'],
      url,
      // The credential is a parameter: `authenticate` reads it.
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
  let count = 1
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) count += 1
  if (count <= maxParameters) return new URLSearchParams(text)
  throw new HttpError(413, 'body_too_large', `The form has more than ${maxParameters} parameters`)
}

// From the query and the form; a parameter of the form wins.
const paramsOf = ({ url, body }: FastifyRequest) =>
  new Params(new URL(url, 'http://door').searchParams, body instanceof URLSearchParams ? body : [])

async function authenticate(
  params: Params,
  request: FastifyRequest,
  { auth }: IntegrationDependencies,
): Promise<Caller> {
  const caller = await auth.apiTokens.verify(params.require('ApiKey', errors.keyRefused), request.ip)
  request.principal = caller
  return caller
}

const commandUnknown = () =>
  new errors.ErrorResponse('1019102', 'This command is not available here, so nothing was sent')

const sendXml = (reply: FastifyReply, body: string) =>
  reply.code(200).type('text/xml; charset=utf-8').send(Buffer.from(body))

const isTransient = ({ status, code }: HttpError) =>
  [429, 503, 504].includes(status) || code === 'registrar_unreachable'

/** The registrar's number for a problem. */
function toRefusal({ status, code, message }: HttpError) {
  if (status === 401) return errors.keyRefused()
  const number = numbers.get(code) ?? (status < 500 ? '2011288' : '3050900')
  return new errors.ErrorResponse(number, message)
}

const numbers = new Map([
  ['domain_not_found', '2019166'],
  ['domain_not_editable', '2030166'],
  ['forbidden', '2030166'],
  ['dns_not_managed', '2030288'],
  ['too_many_records', '3013288'],
])
