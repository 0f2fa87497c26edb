import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { z } from 'zod'
import { defaultLimits } from './limits/connections.ts'

/** Whose `X-Forwarded-For` is believed: nobody's, everybody's, these addresses', or that of the nearest hops. */
export type TrustProxy = boolean | string[] | ((address: string, hop: number) => boolean)

const count = z.coerce.number().int().min(1)

/** The settings that every service has, as zod rules to spread into its own schema. */
export const serverSettings = (port: number) => ({
  NODE_ENV: z.string().default('development'),
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65535).default(port),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  TRUST_PROXY: z.string().default('false').transform(readTrustProxy),
  CORS_ORIGIN: z.string().default('').transform(readList),
  METRICS_TOKEN: z.string().optional(),
  MAX_CONNECTIONS: count.default(defaultLimits.maxConnections),
  HEADERS_TIMEOUT_MS: count.max(120_000).default(defaultLimits.headersTimeout),
  STALL_TIMEOUT_MS: count.max(3_600_000).default(defaultLimits.stallTimeout),
})

/**
 * Reads the environment by one schema. An empty variable counts as absent, and `NAME_FILE` names a file that holds
 * the value of NAME (a secret mounted into a container).
 * @throws {InvalidEnvironment} naming every fault.
 */
export function readEnv<Schema extends z.ZodObject>(
  schema: Schema,
  env: Record<string, string | undefined>,
): z.output<Schema> {
  const faults: string[] = []
  const values: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const value = env[name] || readSecretFile(name, env[`${name}_FILE`], faults)
    if (value) values[name] = value
  }
  const result = schema.safeParse(values)
  if (!result.success) {
    faults.push(...result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`))
  }
  if (!result.success || faults.length > 0) throw new InvalidEnvironment(faults)
  return result.data
}

/** What is wrong with the environment, a line for each fault; no value is quoted. */
export class InvalidEnvironment extends Error {
  constructor(faults: string[]) {
    super(`The environment is not valid:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
  }
}

function readSecretFile(
  name: string,
  file: string | undefined,
  faults: string[],
): string | undefined {
  // USERS_FILE and the like are settings themselves, not the file of a secret.
  if (!file || !secrets.has(name)) return undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    faults.push(`${name}_FILE: cannot be read`)
    return undefined
  }
}

const secrets = new Set(['JWT_SECRET', 'ADMIN_PASSWORD', 'REGISTRAR_API_KEY', 'METRICS_TOKEN'])

const readList = (text: string) => text.split(',').flatMap((part) => part.trim() || [])

// `true`, a number of hops, or the addresses of the proxies; nobody is trusted by default.
function readTrustProxy(text: string, context: z.core.$RefinementCtx): TrustProxy {
  if (text === 'true' || text === 'false') return text === 'true'
  if (/^[0-9]+$/.test(text)) return (_address, hop) => hop < Number(text)
  const proxies = readList(text)
  if (proxies.length > 0 && proxies.every(isNetwork)) return proxies
  context.addIssue('must be true, false, a number of hops, or addresses such as 10.0.0.0/8')
  return z.NEVER
}

// What the framework takes: an address, a network, or one of its names for the networks of no public address.
function isNetwork(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', length, ...more] = text.split('/')
  const most = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  if (length === undefined) return most > 0
  const bits = /^[0-9]{1,3}$/.test(length) ? Number(length) : 0
  return more.length === 0 && bits > 0 && bits <= most
}
