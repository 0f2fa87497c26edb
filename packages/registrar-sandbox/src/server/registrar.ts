import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account, StateFile } from '../account/account.ts'
import type { Domain } from '../account/domain.ts'
import type { Answer, CommandTable } from '../commands/command-table.ts'
import { ErrorResponse, parameterInvalid, tooManyRequests } from '../protocol/errors.ts'
import { type Params, readSubmitted } from '../protocol/parameters.ts'
import { element } from '../protocol/xml.ts'
import { type Breakage, FaultQueue } from './faults.ts'
import type { RateLimit } from './rate-limit.ts'
import { send, sendBroken, sendXml } from './transport.ts'

const maxCalls = 10_000

/** One recorded call, without the API key. */
export interface Call {
  command: string
  domain: string | undefined
  /** Milliseconds since 1970. */
  at: number
  method: string
  params: Record<string, string>
  /** `under way`, `ok`, `error <number>` or `rate`; the caller may have seen worse, see `fault`. */
  outcome: string
  fault: Breakage['kind'] | undefined
}

interface Dependencies {
  account: Account
  commands: CommandTable
  rate: RateLimit
  rateAnswer: '405' | '500000'
  file: StateFile | undefined
  delayMs: number
  now: () => number
}

/** Counts, records, executes and answers calls, subject to faults. */
export class Registrar {
  readonly calls: Call[] = []
  readonly faults = new FaultQueue()
  readonly #parts: Dependencies
  readonly #closing = new AbortController()
  #slowness = new AbortController()
  /** The last answer for each command and domain, and the last of all. */
  readonly #answers = new Map<string, string>()
  /** Zones as they were before their last setHosts. */
  readonly #previous = new Map<string, Pick<Domain, 'emailType' | 'hosts'>>()
  #late: Params[] = []

  constructor(parts: Dependencies) {
    this.#parts = parts
  }

  /** Ends all waits; waiting calls are not executed. */
  stop(): void {
    this.#closing.abort()
  }

  get isStopping(): boolean {
    return this.#closing.signal.aborted
  }

  /** Removes pending faults, and ends the waits of `slow` ones, so that those calls continue at once. */
  clearFaults(): void {
    this.faults.clear()
    this.#slowness.abort()
    this.#slowness = new AbortController()
  }

  clearCalls(): void {
    this.calls.length = 0
  }

  /** Answers one call on the raw response, correctly or with a fault. */
  async handle(method: string, params: Params, reply: ServerResponse): Promise<Call> {
    const { rate, now, delayMs } = this.#parts
    const call = this.#record(method, params)
    if (!rate.take(now())) {
      call.outcome = 'rate'
      this.#refuseForRate(params, reply)
      return call
    }
    const { slow, broken } = this.faults.take(call.command, call.domain)
    call.fault = broken?.kind
    await this.#wait(delayMs)
    if (slow?.when === 'before') await this.#waitWhileSlow(slow.ms)
    const answer = this.#answer(params, broken)
    await this.save()
    if (slow?.when === 'after') await this.#waitWhileSlow(slow.ms)
    call.outcome = answer.outcome
    if (broken) sendBroken(reply, broken, answer.body)
    else sendXml(reply, answer.body)
    return call
  }

  /** Executes the calls delayed by `late` faults now, in order. */
  async runLate(): Promise<void> {
    for (const params of this.#late.splice(0)) this.#parts.commands.answer(params)
    await this.save()
  }

  /** Makes the present state durable if there is a file. */
  async save(): Promise<void> {
    await this.#parts.file?.save(this.#parts.account.copy())
  }

  #record(method: string, params: Params): Call {
    const call: Call = {
      command: params.command,
      domain: params.domain,
      at: this.#parts.now(),
      method,
      params: params.withoutKey(),
      outcome: 'under way',
      fault: undefined,
    }
    this.calls.push(call)
    if (this.calls.length > maxCalls) this.calls.shift()
    return call
  }

  #refuseForRate(params: Params, reply: ServerResponse): void {
    const { commands, rateAnswer } = this.#parts
    if (rateAnswer === '500000') sendXml(reply, commands.refuse(params, tooManyRequests()).body)
    else send(reply, 405, 'text/plain; charset=utf-8', 'Too many requests')
  }

  #answer(params: Params, fault: Breakage | undefined): Answer {
    const key = `${params.command} ${params.domain}`
    const executed = this.#execute(params, fault)
    const answer = this.#substitute(params, executed, fault, key)
    const { body } = fault?.kind === 'duplicate' ? answer : executed
    this.#answers.set(key, body).set('', body)
    return answer
  }

  /** Executes a command; a fault may skip or delay it, use an outdated zone, or add another tool's write. */
  #execute(params: Params, fault: Breakage | undefined): Answer {
    const { account, commands } = this.#parts
    const zone = params.domain === undefined ? undefined : account.find(params.domain)
    const isSetHosts = params.command.endsWith('.sethosts')
    const refusal = fault?.kind === 'refused_row' && isSetHosts && refusalOf(params, fault)
    if (refusal) return commands.refuse(params, refusal)
    if (fault?.kind === 'late') this.#putOff(params, fault.ms)
    const isDry = fault && ('execute' in fault ? !fault.execute : effectless.includes(fault.kind))
    const previous = zone && fault?.kind === 'outdated' && this.#previous.get(zone.name)
    const before = isDry || previous ? account.copy() : undefined
    const addRows = (when: 'before' | 'after') => {
      if (zone && fault?.kind === 'other_tool' && fault.when === when)
        account.edit(zone.name, { hosts: [...zone.hosts, ...fault.add] })
    }
    addRows('before')
    if (zone && previous) Object.assign(zone, previous)
    if (zone && isSetHosts && !before)
      this.#previous.set(zone.name, { emailType: zone.emailType, hosts: zone.hosts })
    const answer = commands.answer(params)
    addRows('after')
    if (before) account.restore(before)
    return answer
  }

  #putOff(params: Params, ms: number | undefined): void {
    this.#late.push(params)
    if (ms === undefined) return
    const isOver = () => undefined // It stops.
    void this.#wait(ms).then(() => this.runLate(), isOver)
  }

  /** Replaces the answer for faults in content. Transport faults are applied later, in `sendBroken`. */
  #substitute(params: Params, answer: Answer, fault: Breakage | undefined, key: string): Answer {
    const { commands } = this.#parts
    switch (fault?.kind) {
      case 'wrong_command':
        return commands.answer(params.withCommand(fault.answer))
      case 'duplicate':
        return { ...answer, body: this.#answers.get(key) ?? this.#answers.get('') ?? answer.body }
      case 'error': {
        const attributes = { Domain: params.domain ?? '', EmailType: '', IsSuccess: false }
        const result = element(resultOf(commands.nameOf(params)), attributes)
        const skeleton = fault.skeleton ? [result] : []
        return commands.refuse(params, new ErrorResponse(fault.number, fault.message, { skeleton }))
      }
      default:
        return answer
    }
  }

  /** @throws if the sandbox stops. */
  async #wait(ms: number, signal = this.#closing.signal): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal })
  }

  async #waitWhileSlow(ms: number): Promise<void> {
    const signal = AbortSignal.any([this.#closing.signal, this.#slowness.signal])
    await this.#wait(ms, signal).catch((error) => {
      if (this.isStopping) throw error
    })
  }
}

/** Faults whose command has no effect now: none at all, or a later one. */
const effectless = ['reset', 'late', 'ignored']

function refusalOf(
  params: Params,
  { address, named }: Extract<Breakage, { kind: 'refused_row' }>,
): ErrorResponse | undefined {
  const row = readSubmitted(params).find((each) => each.address === address)
  if (!row) return undefined
  return named
    ? parameterInvalid(`Address${row.number}`, 'not accepted')
    : parameterInvalid('Address', 'a record is not accepted')
}

// `namecheap.domains.dns.getHosts` gives `DomainDNSGetHostsResult`.
function resultOf(name: string): string {
  const [, , ...words] = name.split('.')
  const word = words.pop() ?? ''
  const group = words.length > 0 ? 'DNS' : ''
  return `Domain${group}${word.charAt(0).toUpperCase()}${word.slice(1)}Result`
}
