import { isIPv4 } from 'node:net'
import type { Account } from '../account/account.ts'
import * as dns from './dns.ts'
import * as errors from './errors.ts'
import { getInfo } from './info.ts'
import * as listing from './listing.ts'
import type { Params } from './parameters.ts'
import * as registration from './registration.ts'
import { type Element, element, renderDocument } from './xml.ts'

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

interface Dependencies {
  account: Account
  access: Access
  now: () => number
  keepsMxPref: boolean
}

interface Command {
  name: string
  run: (params: Params) => Element[]
}

/** The commands of one account: parameters in, a complete XML document out, errors included. */
export class CommandTable {
  readonly #access: Access
  readonly #now: () => number
  readonly #commands: Map<string, Command>

  constructor({ account, access, now, keepsMxPref }: Dependencies) {
    this.#access = access
    this.#now = now
    const runs: [string, Command['run']][] = [
      ['domains.getList', (params) => listing.getList(account, params, now())],
      ['domains.getInfo', (params) => getInfo(account, params, now())],
      ['domains.getContacts', (params) => registration.getContacts(account, params)],
      ['domains.getRegistrarLock', (params) => registration.getRegistrarLock(account, params)],
      ['domains.renew', (params) => registration.renew(account, params)],
      ['domains.getTldList', () => listing.getTlds()],
      ['domains.check', (params) => listing.check(account, params)],
      ['domains.dns.getHosts', (params) => dns.getHosts(account, params)],
      ['domains.dns.setHosts', (params) => dns.setHosts(account, params, keepsMxPref)],
      ['domains.dns.getList', (params) => dns.getServers(account, params)],
      ['domains.dns.setDefault', (params) => dns.setDefault(account, params)],
      ['domains.dns.setCustom', (params) => dns.setCustom(account, params)],
      ['domains.dns.getEmailForwarding', (params) => dns.getForwards(account, params)],
      ['domains.dns.setEmailForwarding', (params) => dns.setForwards(account, params)],
      ['users.getBalances', () => listing.getBalances()],
    ]
    const commands = runs.map(([name, run]) => ({ name: `namecheap.${name}`, run }))
    this.#commands = new Map(commands.map((command) => [command.name.toLowerCase(), command]))
  }

  /** Authenticates the caller and executes the command. */
  answer(params: Params): Answer {
    const envelope = this.#describe(params)
    try {
      this.#authenticate(params)
      const command = this.#commands.get(envelope.requested)
      if (!command) throw errors.commandUnknown()
      const result = command.run(params)
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

  #describe(params: Params) {
    const requested = (params.get('Command') ?? '').toLowerCase()
    const milliseconds = 10 + (this.#now() % 400)
    return { command: this.#commands.get(requested)?.name, requested, milliseconds }
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

interface Envelope {
  /** As the registrar spells it; undefined if unknown. */
  command: string | undefined
  /** As the caller spelled it; empty without authentication. */
  requested: string
  milliseconds: number
}

// The answer of an executed command.
function renderResult(envelope: Envelope, result: Element[]): string {
  return renderEnvelope('OK', [], envelope, result)
}

// The answer of a refused command.
function renderRefusal(envelope: Envelope, refusal: errors.ErrorResponse): string {
  const refusals = [element('Error', { Number: refusal.number }, refusal.message)]
  const command = refusal.isGlobal ? undefined : envelope.command
  const requested = refusal.isGlobal ? '' : envelope.requested
  return renderEnvelope('ERROR', refusals, { ...envelope, command, requested }, refusal.skeleton)
}

function renderEnvelope(
  status: string,
  refusals: Element[],
  { command, requested, milliseconds }: Envelope,
  result: Element[],
): string {
  const response = command ? [element('CommandResponse', { Type: command }, result)] : []
  const attributes = { Status: status, xmlns: 'http://api.namecheap.com/xml.response' }
  const parts = [
    element('Errors', {}, refusals),
    element('Warnings'),
    element('RequestedCommand', {}, requested.toLowerCase()),
    ...response,
    element('Server', {}, 'SANDBOX01'),
    // The registrar does write the sign twice.
    element('GMTTimeDifference', {}, '--5:00'),
    element('ExecutionTime', {}, String(Number((milliseconds / 1000).toFixed(3)))),
  ]
  return renderDocument(element('ApiResponse', attributes, parts))
}
