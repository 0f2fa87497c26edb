import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { Account, type Edit, StateFile } from './account/account.ts'
import type { Domain, DomainSketch, Host, HostSketch } from './account/domain.ts'
import { makeSamples } from './account/samples.ts'
import { sortHosts } from './account/zone.ts'
import { CommandTable } from './commands/command-table.ts'
import type { Fault, FaultInput } from './server/faults.ts'
import { RateLimit } from './server/rate-limit.ts'
import { type Call, Registrar } from './server/registrar.ts'
import { buildServer } from './server/server.ts'

export type { Call, Domain, DomainSketch, Edit, Fault, FaultInput, Host, HostSketch }

export interface SandboxOptions {
  host?: string
  /** 0: any free port. */
  port?: number
  apiUser: string
  apiKey: string
  /** Default: the API user. */
  userName?: string
  /** Accepted values of the parameter ClientIp; `*` accepts any. The real peer address is ignored. */
  allowedIps?: string[]
  /** Default: the sample domains. Ignored if the file already holds a state. */
  domains?: DomainSketch[]
  /** `off`, or limits such as the default, `20/minute,700/hour,8000/day`. */
  rate?: string
  /** How a call over the limit is refused: HTTP 405, or error 500000 in HTTP 200. */
  rateAnswer?: '405' | '500000'
  /** An MX sent again with another preference keeps the old one. */
  keepsMxPref?: boolean
  /** Where the domains are stored. Default: in memory. */
  file?: string
  /** Minimum duration of every call. */
  delayMs?: number
  log?: FastifyBaseLogger | false
  now?: () => number
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

/** Starts a registrar; it answers until it is closed. */
export async function startSandbox(options: SandboxOptions) {
  const { host = '127.0.0.1', port = 0, log } = options
  const file = options.file ? new StateFile(options.file) : undefined
  const account = await openAccount(options, file)
  const registrar = openRegistrar(options, account, file)
  await registrar.save()
  const app = buildServer(registrar, log || undefined)
  await app.listen({ host, port })
  const close = (): Promise<void> => app.close()

  return {
    /** The address of the API, ending in `/xml.response`. */
    url: `${originOf(app.server.address())}/xml.response`,
    /** Calls since the start or the last `clearCalls()`, oldest first; at most 10,000. */
    calls: registrar.calls as readonly Call[],
    /** Pending faults: no call has matched them yet. */
    get faults() {
      return registrar.faults.pending
    },
    /** Rows and email type as getHosts returns them. */
    zone: (name: string): Pick<Domain, 'emailType' | 'hosts'> => {
      const domain = account.find(name)
      if (!domain) throw new RangeError(`The account has no domain ${name}`)
      const { emailType, hosts } = structuredClone(domain)
      return { emailType, hosts: sortHosts(hosts) }
    },
    /** Changes a domain as in the panel, unchecked and without a call. */
    setZone: (name: string, edit: Edit) => {
      account.edit(name, edit)
      return registrar.save()
    },
    /** Adds a domain, or replaces the one of that name. */
    addDomain: (domain: DomainSketch) => {
      account.add(domain)
      return registrar.save()
    },
    removeDomain: (name: string) => {
      account.remove(name)
      return registrar.save()
    },
    fault: (...list: FaultInput[]) => registrar.faults.add(list),
    /** Executes the calls delayed by `late` faults now. */
    runLate: () => registrar.runLate(),
    /** Removes pending faults; calls delayed by `slow` ones continue at once. */
    clearFaults: () => registrar.clearFaults(),
    clearCalls: () => registrar.clearCalls(),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function openAccount(
  { apiUser, userName = apiUser, domains, now = Date.now }: SandboxOptions,
  file: StateFile | undefined,
): Promise<Account> {
  const account = new Account(userName, now)
  const saved = await file?.load()
  if (saved) account.restore(saved)
  else for (const domain of domains ?? makeSamples(now())) account.add(domain)
  return account
}

function openRegistrar(options: SandboxOptions, account: Account, file: StateFile | undefined) {
  const { apiUser, apiKey, userName = apiUser, allowedIps = ['127.0.0.1'] } = options
  const { keepsMxPref = false, rateAnswer = '405', delayMs = 0, now = Date.now } = options
  const access = { apiUser, apiKey, userName, allowedIps }
  const commands = new CommandTable(access, { account, now, keepsMxPref })
  const rate = new RateLimit(options.rate ?? '20/minute,700/hour,8000/day')
  return new Registrar({ account, commands, rate, rateAnswer, file, delayMs, now })
}

function originOf(address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new TypeError('Not listening on TCP')
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return `http://${host}:${address.port}`
}
