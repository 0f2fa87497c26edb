import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from '../account/account.ts'
import type { StateFile } from '../account/account-file.ts'
import type { Answer, CommandTable } from '../commands/command-table.ts'
import { ErrorResponse, tooManyRequests } from '../commands/errors.ts'
import type { Params } from '../commands/parameters.ts'
import { element } from '../commands/xml.ts'
import type { Breakage, FaultQueue } from './faults.ts'
import type { RateLimit } from './rate-limit.ts'
import { send, sendBroken, sendXml } from './transport.ts'

const mostCalls = 10_000

/** One call, as the sandbox remembers it. The API key is not in it. */
export interface Call {
  command: string
  domain: string | undefined
  /** Milliseconds since 1970. */
  at: number
  method: string
  params: Record<string, string>
  /** `under way`, `ok`, `error <number>` or `rate`; what the caller saw may be worse, see `fault`. */
  outcome: string
  fault: Breakage['kind'] | undefined
}

interface Parts {
  account: Account
  api: CommandTable
  rate: RateLimit
  rateAnswer: '405' | '500000'
  faults: FaultQueue
  file: StateFile | undefined
  delayMs: number
  now: () => number
}

/** Takes the calls: counts them, lets the faults at them, has them answered, and remembers them. */
export class CallHandler {
  readonly calls: Call[] = []
  readonly #parts: Parts
  readonly #answers = new Map<string, string>()
  readonly #closing = new AbortController()
  #latest = ''

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Ends every wait; calls that were waiting are not carried out any more. */
  stop(): void {
    this.#closing.abort()
  }

  get isStopping(): boolean {
    return this.#closing.signal.aborted
  }

  /** Answers one call on the bare response, well or badly, and says how it went. */
  async take(method: string, params: Params, reply: ServerResponse): Promise<Call> {
    const { rate, faults, now, delayMs } = this.#parts
    const call = this.#remember(method, params)
    if (!rate.take(now())) {
      call.outcome = 'rate'
      this.#sendRateAnswer(params, reply)
      return call
    }
    const { slow, broken } = faults.take(call.command, call.domain)
    call.fault = broken?.kind
    await this.#wait(delayMs + (slow?.when === 'before' ? slow.ms : 0))
    const answer = await this.#perform(call, params, broken)
    if (slow?.when === 'after') await this.#wait(slow.ms)
    call.outcome = answer.outcome
    if (broken) sendBroken(reply, broken, answer.body)
    else sendXml(reply, answer.body)
    return call
  }

  /** Makes the present state durable, where there is a file. */
  async save(): Promise<void> {
    await this.#parts.file?.save(this.#parts.account.copy())
  }

  async #perform(call: Call, params: Params, broken: Breakage | undefined): Promise<Answer> {
    const { account, api } = this.#parts
    const isExecuted = broken === undefined || doesExecute(broken)
    const before = isExecuted ? undefined : account.copy()
    const answer = api.answer(params)
    if (before) account.restore(before)
    else if (call.command.includes('.set')) await this.save()
    const given = this.#replace(call, params, answer, broken)
    const last = broken?.kind === 'duplicate' ? given.body : answer.body
    this.#answers.set(keyOf(call), last)
    this.#latest = last
    return given
  }

  // Faults that change how the answer travels are the wire's; these put another answer in its place.
  #replace(call: Call, params: Params, answer: Answer, broken: Breakage | undefined): Answer {
    const { api } = this.#parts
    if (broken?.kind === 'wrong_command') return api.answer(params.withCommand(broken.answer))
    if (broken?.kind === 'duplicate') {
      const body = this.#answers.get(keyOf(call)) ?? this.#latest
      return { ...answer, body: body || answer.body }
    }
    if (broken?.kind !== 'error') return answer
    const looks = { Domain: call.domain ?? '', EmailType: '', IsSuccess: false }
    const skeleton = broken.skeleton ? [element(resultOf(call.command), looks)] : []
    return api.refuse(params, new ErrorResponse(broken.number, broken.message, { skeleton }))
  }

  #remember(method: string, params: Params): Call {
    const call: Call = {
      command: (params.get('Command') ?? '').toLowerCase(),
      domain: params.domain,
      at: this.#parts.now(),
      method,
      params: params.withoutKey(),
      outcome: 'under way',
      fault: undefined,
    }
    this.calls.push(call)
    if (this.calls.length > mostCalls) this.calls.shift()
    return call
  }

  #sendRateAnswer(params: Params, reply: ServerResponse): void {
    const { api, rateAnswer } = this.#parts
    if (rateAnswer === '500000') sendXml(reply, api.refuse(params, tooManyRequests()).body)
    else send(reply, 405, 'text/plain; charset=utf-8', 'Too many requests')
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.#closing.signal })
  }
}

function doesExecute(fault: Breakage): boolean {
  if ('execute' in fault) return fault.execute
  return fault.kind === 'lost'
}

function keyOf({ command, domain }: Call): string {
  return `${command} ${domain}`
}

function resultOf(command: string): string {
  const known: Record<string, string> = {
    'namecheap.domains.getinfo': 'DomainGetInfoResult',
    'namecheap.domains.getlist': 'DomainGetListResult',
    'namecheap.domains.dns.gethosts': 'DomainDNSGetHostsResult',
    'namecheap.domains.dns.sethosts': 'DomainDNSSetHostsResult',
    'namecheap.domains.dns.getlist': 'DomainDNSGetListResult',
  }
  return known[command] ?? 'Result'
}
