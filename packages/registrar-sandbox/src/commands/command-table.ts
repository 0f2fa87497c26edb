import { isIPv4 } from 'node:net'
import { renderRefusal, renderResult } from '../protocol/envelope.ts'
import * as errors from '../protocol/errors.ts'
import type { Params } from '../protocol/parameters.ts'
import type { Commands, Context } from './command.ts'
import { dnsCommands } from './dns.ts'
import { infoCommands } from './info.ts'
import { listingCommands } from './listing.ts'
import { registrationCommands } from './registration.ts'

/** Credentials, and the addresses that may call; `*` allows any. */
export interface Access {
  apiUser: string
  apiKey: string
  userName: string
  allowedIps: string[]
}

/** The XML document, and the outcome: `ok` or `error <number>`. */
export interface Answer {
  body: string
  outcome: string
}

const commands: Commands = {
  ...listingCommands,
  ...infoCommands,
  ...registrationCommands,
  ...dnsCommands,
}

/** As the registrar spells them, by their lower-cased names. */
const names = new Map(
  Object.keys(commands).map((name) => [`namecheap.${name}`.toLowerCase(), name]),
)

/** The commands of one account: parameters in, a complete XML document out, errors included. */
export class CommandTable {
  readonly #access: Access
  readonly #context: Context

  constructor(access: Access, context: Context) {
    this.#access = access
    this.#context = context
  }

  /** Authenticates the caller and executes the command. */
  answer(params: Params): Answer {
    const envelope = this.#describe(params)
    try {
      this.#authenticate(params)
      const command = commands[names.get(envelope.requested) ?? '']
      if (!command) throw errors.commandUnknown()
      const result = command(params, this.#context)
      return { body: renderResult(envelope, result), outcome: 'ok' }
    } catch (error) {
      if (!(error instanceof errors.ErrorResponse)) throw error
      return { body: renderRefusal(envelope, error), outcome: `error ${error.number}` }
    }
  }

  /** Refuses without authentication; the command is not executed. */
  refuse(params: Params, refusal: errors.ErrorResponse): Answer {
    const body = renderRefusal(this.#describe(params), refusal)
    return { body, outcome: `error ${refusal.number}` }
  }

  /** The name of the command as the registrar spells it. */
  nameOf(params: Params): string {
    const name = names.get(params.command)
    return name === undefined ? '' : `namecheap.${name}`
  }

  #describe(params: Params) {
    const milliseconds = 10 + (this.#context.now() % 400)
    const command = this.nameOf(params) || undefined
    return { command, requested: params.command, milliseconds, server: 'SANDBOX01' }
  }

  #authenticate(params: Params): void {
    const { apiUser, apiKey, userName, allowedIps } = this.#access
    const user = params.require('ApiUser', errors.apiUserMissing)
    const key = params.require('ApiKey', errors.keyRefused)
    const name = params.require('UserName', errors.userNameMissing)
    params.require('Command', errors.commandMissing)
    const ip = params.require('ClientIp', errors.clientIpMissing)
    if (!isIPv4(ip)) throw errors.clientIpInvalid()
    if (user.toLowerCase() !== apiUser.toLowerCase() || key !== apiKey) throw errors.keyRefused()
    if (name.toLowerCase() !== userName.toLowerCase()) throw errors.userNameUnknown()
    if (!allowedIps.includes(ip) && !allowedIps.includes('*')) throw errors.clientIpRefused(ip)
  }
}
