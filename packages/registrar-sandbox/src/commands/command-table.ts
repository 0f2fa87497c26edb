import { isIPv4 } from 'node:net'
import type { Account } from '../account/account.ts'
import { renderRefusal, renderResult } from '../protocol/envelope.ts'
import * as errors from '../protocol/errors.ts'
import type { Params } from '../protocol/parameters.ts'
import type { Element } from '../protocol/xml.ts'
import * as dns from './dns.ts'
import { getInfo } from './info.ts'
import * as listing from './listing.ts'
import * as registration from './registration.ts'

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

  /** The name of the command as the registrar spells it. */
  nameOf(params: Params): string {
    return this.#commands.get(params.command)?.name ?? ''
  }

  #describe(params: Params) {
    const milliseconds = 10 + (this.#now() % 400)
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
