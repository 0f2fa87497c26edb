import type { ServerResponse } from 'node:http'
import { isIPv4 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account, AccountOptions } from '../account/account.ts'
import type { Domain, DomainSketch, HostSketch } from '../account/domain.ts'
import { commands } from '../commands/domains.ts'
import { type Params, readSubmitted } from '../protocol/parameters.ts'
import * as responses from '../protocol/responses.ts'
import { sortHosts } from '../protocol/responses.ts'
import { type Breakage, Fault, type FaultInput, send, sendXml, takeFaults } from './faults.ts'
import { RateLimit } from './rate-limit.ts'

const maxCalls = 10_000

export interface Call {
  command: string
  domain: string | undefined
  /** Milliseconds since 1970. */
  at: number
  method: string
  params: Record<string, string>
  /** `under way`, `ok`, `error <number>` or `rate`; the caller may have seen worse, see `fault`. */
  outcome: string
  fault?: Breakage['kind'] | undefined
}

export interface RegistrarOptions extends Partial<Omit<AccountOptions, 'owner'>> {
  apiUser: string
  apiKey: string
  /** `off`, or limits such as the default, `20/minute,700/hour,8000/day`. */
  rate?: string
  /** An MX sent again with another preference keeps the old one. */
  keepsMxPref?: boolean
  /** Minimum duration of every call. */
  delayMs?: number
}

/** The only whitelisted address. The real peer address is ignored. */
const allowedIp = '127.0.0.1'

/** The commands as the registrar spells them, by their lower-cased names. */
const names = new Map(Object.keys(commands).map((name) => [`namecheap.${name}`.toLowerCase(), name]))

type Answer = responses.Element[] | responses.ErrorResponse

const defaults = { rate: '20/minute,700/hour,8000/day', keepsMxPref: false, delayMs: 0, now: Date.now }

/** Counts, records, executes and answers calls, subject to faults. */
export class Registrar {
  readonly #options: RegistrarOptions & typeof defaults
  readonly #account: Account
  readonly #rate: RateLimit
  /** Ends the waits of calls. */
  #waits = new AbortController()
  isStopping = false
  /** Zones as they were before their last setHosts. */
  readonly #previous = new Map<string, Pick<Domain, 'emailType' | 'hosts'>>()
  #late: Params[] = []
  /** Pending: no call has matched them yet. */
  faults: Fault[] = []
  /** Calls since the start or the last `clearCalls()`, oldest first; at most 10,000. */
  readonly calls: Call[] = []

  constructor(options: RegistrarOptions, account: Account) {
    this.#options = { ...defaults, ...options }
    this.#account = account
    this.#rate = new RateLimit(this.#options.rate)
  }

  /** Ends all waits; waiting calls are not executed. */
  stop(): void {
    this.isStopping = true
    this.#waits.abort()
  }

  fault(...list: FaultInput[]): void {
    this.faults.push(...list.map((fault) => Fault.parse(fault)))
  }

  /** Removes pending faults; delayed calls continue at once. */
  clearFaults(): void {
    this.faults = []
    this.#waits.abort()
    this.#waits = new AbortController()
  }

  clearCalls(): void {
    this.calls.length = 0
  }

  /** Rows and email type as getHosts returns them. */
  zone(name: string): Pick<Domain, 'emailType' | 'hosts'> {
    const { emailType, hosts } = structuredClone(this.#account.get(name))
    return { emailType, hosts: sortHosts(hosts) }
  }

  /** Changes a domain as in the panel, unchecked and without a call. */
  setZone(name: string, edit: Partial<DomainSketch>): Promise<void> {
    this.#account.edit(name, edit)
    return this.#account.save()
  }

  /** Adds a domain, or replaces the one of that name. */
  addDomain(domain: DomainSketch): Promise<void> {
    this.#account.add(domain)
    return this.#account.save()
  }

  removeDomain(name: string): Promise<void> {
    this.#account.remove(name)
    return this.#account.save()
  }

  /** Answers one call on the raw response, correctly or with a fault. */
  async handle(method: string, params: Params, reply: ServerResponse): Promise<Call> {
    const { now, delayMs } = this.#options
    const { command, domain } = params
    const call: Call = { command, domain, at: now(), method, params: params.withoutKey(), outcome: 'under way' }
    this.calls.push(call)
    if (this.calls.length > maxCalls) this.calls.shift()
    if (!this.#rate.take(now())) {
      call.outcome = 'rate'
      send(reply, 405, 'text/plain; charset=utf-8', 'Too many requests')
      return call
    }
    const { slow, broken, rest } = takeFaults(this.faults, call)
    this.faults = rest
    call.fault = broken?.kind
    await this.#wait(delayMs)
    if (slow?.when === 'before') await this.#wait(slow.ms)
    const answer = this.#answer(params, broken)
    await this.#account.save()
    if (slow?.when === 'after') await this.#wait(slow.ms)
    call.outcome = answer instanceof responses.ErrorResponse ? `error ${answer.number}` : 'ok'
    const shown = broken?.kind === 'wrong_command' ? params.withCommand(broken.answer) : params
    sendXml(reply, render(shown, answer), broken)
    return call
  }

  /** Executes the calls delayed by `late` faults now, in order. */
  async runLate(): Promise<void> {
    for (const params of this.#late.splice(0)) this.#execute(params)
    await this.#account.save()
  }

  #execute(params: Params, account = this.#account): Answer {
    try {
      authenticate(params, this.#options)
      const command = commands[names.get(params.command) ?? '']
      if (!command) throw new responses.ErrorResponse('1011104', 'Parameter Command is invalid')
      return command(params, { ...this.#options, account })
    } catch (error) {
      if (error instanceof responses.ErrorResponse) return error
      throw error
    }
  }

  /** Executes a command; a fault in content may refuse, skip or delay it, or replace its answer. */
  #answer(params: Params, fault: Breakage | undefined): Answer {
    const isSetHosts = params.command.endsWith('.sethosts')
    const refusal = fault?.kind === 'refused_row' && isSetHosts && refusalOf(params, fault)
    if (refusal) return refusal
    if (fault?.kind === 'late') this.#late.push(params)
    if (fault?.kind === 'other_tool' && fault.when === 'before') this.#addRows(params, fault.add)
    const answer = this.#execute(params, this.#accountFor(params, fault))
    if (fault?.kind === 'other_tool' && fault.when === 'after') this.#addRows(params, fault.add)
    if (fault?.kind === 'wrong_command') return this.#execute(params.withCommand(fault.answer))
    if (fault?.kind !== 'error') return answer
    const skeleton = fault.skeleton && Array.isArray(answer) ? answer : []
    return new responses.ErrorResponse(fault.number, fault.message, { skeleton })
  }

  /** A copy, if a fault keeps the command from having an effect, or shows an outdated zone. */
  #accountFor({ command, domain = '' }: Params, fault: Breakage | undefined): Account {
    const zone = this.#account.find(domain)
    const previous = fault?.kind === 'outdated' && this.#previous.get(domain)
    const isDry = fault && ('execute' in fault ? !fault.execute : effectless.includes(fault.kind))
    if (isDry || previous) {
      const copy = this.#account.copy()
      if (previous) Object.assign(copy.get(domain), previous)
      return copy
    }
    if (zone && command.endsWith('.sethosts'))
      this.#previous.set(zone.name, { emailType: zone.emailType, hosts: zone.hosts })
    return this.#account
  }

  #addRows({ domain = '' }: Params, rows: HostSketch[]): void {
    const zone = this.#account.find(domain)
    if (zone) this.#account.edit(zone.name, { hosts: [...zone.hosts, ...rows] })
  }

  /** @throws if the sandbox stops. */
  async #wait(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.#waits.signal }).catch(() => undefined)
    if (this.isStopping) throw new Error('The sandbox stops')
  }
}

/** Faults whose command has no effect now: none at all, or a later one. */
const effectless = ['reset', 'late', 'ignored']

function refusalOf(
  params: Params,
  { address, named }: Extract<Breakage, { kind: 'refused_row' }>,
): responses.ErrorResponse | undefined {
  const row = readSubmitted(params).find((each) => each.address === address)
  if (!row) return undefined
  return named
    ? responses.parameterInvalid(`Address${row.number}`, 'not accepted')
    : responses.parameterInvalid('Address', 'a record is not accepted')
}

function render({ command: requested }: Params, answer: Answer): string {
  const name = names.get(requested)
  return responses.renderAnswer({ command: name && `namecheap.${name}`, requested, server: 'SANDBOX01' }, answer)
}

function authenticate(params: Params, { apiUser, apiKey }: RegistrarOptions): void {
  const { accessRefused, keyRefused } = responses
  const missing = (number: string) => (name: string) => accessRefused(number, `Parameter ${name} is missing`)
  const isUser = (name: string) => name.toLowerCase() === apiUser.toLowerCase()
  const user = params.require('ApiUser', missing('1010101'))
  const key = params.require('ApiKey', keyRefused)
  const name = params.require('UserName', missing('1010103'))
  params.require('Command', responses.commandMissing)
  const ip = params.require('ClientIp', missing('1010105'))
  if (!isIPv4(ip)) throw accessRefused('1011105', 'Parameter ClientIp is not an IPv4')
  if (!isUser(user) || key !== apiKey) throw keyRefused()
  if (!isUser(name)) throw accessRefused('1019103', 'The UserName is not available')
  if (ip !== allowedIp) throw accessRefused('1011150', `Invalid request IP: ${ip}`)
}
