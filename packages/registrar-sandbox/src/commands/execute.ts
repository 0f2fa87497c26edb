import { isIPv4 } from 'node:net'
import * as errors from '../protocol/answer.ts'
import type { Params } from '../protocol/parameters.ts'
import { type Context, commands } from './domains.ts'

interface Access {
  apiUser: string
  apiKey: string
}

/** The only whitelisted address. The real peer address is ignored. */
const allowedIp = '127.0.0.1'

export type Answer = errors.Element[] | errors.ErrorResponse

/** As the registrar spells them, by their lower-cased names. */
const names = new Map(Object.keys(commands).map((name) => [`namecheap.${name}`.toLowerCase(), name]))

export function execute(params: Params, context: Context & Access): Answer {
  try {
    authenticate(params, context)
    const command = commands[names.get(params.command) ?? '']
    if (!command) throw new errors.ErrorResponse('1011104', 'Parameter Command is invalid')
    return command(params, context)
  } catch (error) {
    if (error instanceof errors.ErrorResponse) return error
    throw error
  }
}

export function render({ command: requested }: Params, answer: Answer, now: number): string {
  const name = names.get(requested)
  const command = name && `namecheap.${name}`
  const envelope = { command, requested, milliseconds: 10 + (now % 400), server: 'SANDBOX01' }
  return errors.renderAnswer(envelope, answer)
}

function authenticate(params: Params, { apiUser, apiKey }: Access): void {
  const { accessRefused, keyRefused } = errors
  const missing = (number: string) => (name: string) => accessRefused(number, `Parameter ${name} is missing`)
  const isUser = (name: string) => name.toLowerCase() === apiUser.toLowerCase()
  const user = params.require('ApiUser', missing('1010101'))
  const key = params.require('ApiKey', keyRefused)
  const name = params.require('UserName', missing('1010103'))
  params.require('Command', errors.commandMissing)
  const ip = params.require('ClientIp', missing('1010105'))
  if (!isIPv4(ip)) throw accessRefused('1011105', 'Parameter ClientIp is not an IPv4')
  if (!isUser(user) || key !== apiKey) throw keyRefused()
  if (!isUser(name)) throw accessRefused('1019103', 'The UserName is not available')
  if (ip !== allowedIp) throw accessRefused('1011150', `Invalid request IP: ${ip}`)
}
