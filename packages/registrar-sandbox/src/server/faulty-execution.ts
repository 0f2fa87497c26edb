import type { Account } from '../account/account.ts'
import type { Domain } from '../account/domain.ts'
import type { Answer, CommandTable } from '../commands/command-table.ts'
import { ErrorResponse, parameterInvalid } from '../protocol/errors.ts'
import { type Params, readSubmitted } from '../protocol/parameters.ts'
import { element } from '../protocol/xml.ts'
import type { Breakage } from './faults.ts'

type Zone = Pick<Domain, 'emailType' | 'hosts'>

/** Executes commands as a fault demands: not at all, later, on an outdated zone, or with another answer. */
export class FaultyExecution {
  readonly #account: Account
  readonly #commands: CommandTable
  readonly #answers = new Map<string, string>()
  /** Zones as they were before their last setHosts. */
  readonly #previous = new Map<string, Zone>()
  #latest = ''
  #late: Params[] = []

  constructor(account: Account, commands: CommandTable) {
    this.#account = account
    this.#commands = commands
  }

  run(params: Params, broken: Breakage | undefined): Answer {
    if (broken?.kind === 'late') this.#late.push(params)
    if (broken?.kind === 'other_tool' && broken.when === 'before') this.#addRows(params, broken.add)
    const answer = this.#execute(params, broken)
    if (broken?.kind === 'other_tool' && broken.when === 'after') this.#addRows(params, broken.add)
    const given = this.#substitute(params, answer, broken)
    const last = broken?.kind === 'duplicate' ? given.body : answer.body
    this.#answers.set(keyOf(params), last)
    this.#latest = last
    return given
  }

  /** Executes what was put off, in its order. */
  runLate(): void {
    const late = this.#late
    this.#late = []
    for (const params of late) this.#commands.answer(params)
  }

  #execute(params: Params, broken: Breakage | undefined): Answer {
    if (broken?.kind === 'refused_row') {
      const refusal = refusalOf(params, broken)
      if (refusal) return this.#commands.refuse(params, refusal)
    }
    if (broken?.kind === 'outdated') return this.#answerOutdated(params)
    if (broken && !doesExecute(broken)) return this.#answerOnly(params)
    const zone = this.#zoneOf(params)
    if (zone && params.command.endsWith('.sethosts')) {
      this.#previous.set(zone.name, { emailType: zone.emailType, hosts: zone.hosts })
    }
    return this.#commands.answer(params)
  }

  // The answer that the command would have, without its effect.
  #answerOnly(params: Params): Answer {
    const before = this.#account.copy()
    const answer = this.#commands.answer(params)
    this.#account.restore(before)
    return answer
  }

  #answerOutdated(params: Params): Answer {
    const domain = this.#zoneOf(params)
    const previous = domain && this.#previous.get(domain.name)
    if (!domain || !previous) return this.#commands.answer(params)
    const { emailType, hosts } = domain
    Object.assign(domain, previous)
    try {
      return this.#commands.answer(params)
    } finally {
      Object.assign(domain, { emailType, hosts })
    }
  }

  // Faults of the transport keep the answer; these replace it.
  #substitute(params: Params, answer: Answer, broken: Breakage | undefined): Answer {
    if (broken?.kind === 'wrong_command')
      return this.#commands.answer(params.withCommand(broken.answer))
    if (broken?.kind === 'duplicate') {
      const body = this.#answers.get(keyOf(params)) ?? this.#latest
      return { ...answer, body: body || answer.body }
    }
    if (broken?.kind !== 'error') return answer
    const attributes = { Domain: params.domain ?? '', EmailType: '', IsSuccess: false }
    const skeleton = broken.skeleton
      ? [element(resultOf(this.#commands.nameOf(params)), attributes)]
      : []
    const refusal = new ErrorResponse(broken.number, broken.message, { skeleton })
    return this.#commands.refuse(params, refusal)
  }

  #addRows(params: Params, rows: Extract<Breakage, { kind: 'other_tool' }>['add']): void {
    const zone = this.#zoneOf(params)
    if (zone) this.#account.edit(zone.name, { hosts: [...zone.hosts, ...rows] })
  }

  #zoneOf(params: Params): Domain | undefined {
    return params.domain === undefined ? undefined : this.#account.find(params.domain)
  }
}

function refusalOf(
  params: Params,
  fault: Extract<Breakage, { kind: 'refused_row' }>,
): ErrorResponse | undefined {
  if (!params.command.endsWith('.sethosts')) return undefined
  const row = readSubmitted(params).find(({ address }) => address === fault.address)
  if (!row) return undefined
  return fault.named
    ? parameterInvalid(`Address${row.number}`, 'not accepted')
    : parameterInvalid('Address', 'a record is not accepted')
}

function doesExecute(fault: Breakage): boolean {
  if ('execute' in fault) return fault.execute
  return !['reset', 'late', 'ignored'].includes(fault.kind)
}

const keyOf = (params: Params) => `${params.command} ${params.domain}`

// `namecheap.domains.dns.getHosts` gives `DomainDNSGetHostsResult`.
function resultOf(name: string): string {
  const [, , ...words] = name.split('.')
  const word = words.pop() ?? ''
  const group = words.length > 0 ? 'DNS' : ''
  return `Domain${group}${word.charAt(0).toUpperCase()}${word.slice(1)}Result`
}
