import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account, StateFile } from '../account/account.ts'
import type { Answer, CommandTable } from '../commands/command-table.ts'
import { tooManyRequests } from '../protocol/errors.ts'
import type { Params } from '../protocol/parameters.ts'
import type { Breakage, FaultQueue } from './faults.ts'
import { FaultyExecution } from './faulty-execution.ts'
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
  faults: FaultQueue
  file: StateFile | undefined
  delayMs: number
  now: () => number
}

/** Handles calls: counts them, applies faults, executes and answers them, and records them. */
export class CallHandler {
  readonly calls: Call[] = []
  readonly #parts: Dependencies
  readonly #execution: FaultyExecution
  readonly #closing = new AbortController()
  #slowness = new AbortController()

  constructor(parts: Dependencies) {
    this.#parts = parts
    this.#execution = new FaultyExecution(parts.account, parts.commands)
  }

  /** Ends every wait; calls that were waiting are not executed any more. */
  stop(): void {
    this.#closing.abort()
  }

  /** Removes the faults that no call has met yet, and ends the waits of `slow` ones: those calls go on now. */
  clearFaults(): void {
    this.#parts.faults.clear()
    this.#slowness.abort()
    this.#slowness = new AbortController()
  }

  get isStopping(): boolean {
    return this.#closing.signal.aborted
  }

  /** Answers one call on the bare response, well or with a fault. */
  async handle(method: string, params: Params, reply: ServerResponse): Promise<Call> {
    const { rate, faults, now, delayMs } = this.#parts
    const call = this.#record(method, params)
    if (!rate.take(now())) {
      call.outcome = 'rate'
      this.#refuseForRate(params, reply)
      return call
    }
    const { slow, broken } = faults.take(call.command, call.domain)
    call.fault = broken?.kind
    await this.#wait(delayMs)
    if (slow?.when === 'before') await this.#waitWhileSlow(slow.ms)
    const answer = await this.#execute(params, broken)
    if (slow?.when === 'after') await this.#waitWhileSlow(slow.ms)
    call.outcome = answer.outcome
    if (broken) sendBroken(reply, broken, answer.body)
    else sendXml(reply, answer.body)
    return call
  }

  /** Executes now what `late` faults put off. */
  async runLate(): Promise<void> {
    this.#execution.runLate()
    await this.save()
  }

  /** Makes the present state durable if there is a file. */
  async save(): Promise<void> {
    await this.#parts.file?.save(this.#parts.account.copy())
  }

  async #execute(params: Params, broken: Breakage | undefined): Promise<Answer> {
    const answer = this.#execution.run(params, broken)
    if (broken?.kind === 'late' && broken.ms !== undefined) void this.#runLateAfter(broken.ms)
    await this.save()
    return answer
  }

  async #runLateAfter(ms: number): Promise<void> {
    await this.#wait(ms).then(
      () => this.runLate(),
      () => undefined, // It stops.
    )
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

  /** @throws where the sandbox stops. */
  async #wait(ms: number, signal = this.#closing.signal): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal })
  }

  async #waitWhileSlow(ms: number): Promise<void> {
    const { signal } = this.#slowness
    await this.#wait(ms, AbortSignal.any([this.#closing.signal, signal])).catch((error) => {
      if (this.isStopping) throw error
    })
  }
}
