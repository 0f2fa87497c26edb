import { readFileSync } from 'node:fs'
import { codeOf } from '@domains-and-files/persistence'
import { z } from 'zod'
import { defaultLimits } from './limits/connections.ts'
import type { TrustProxy } from './requests/request-head.ts'
import { describeIssue } from './requests/validation.ts'
import { StartRefusedError } from './start-service.ts'

/** A setting that `parse` reads; a text of which it makes nothing is refused with the message. */
export const setting = <Value>(parse: (text: string) => Value | undefined, message: string) =>
  z.string().transform((text, context) => {
    const value = parse(text)
    if (value !== undefined) return value
    // The rules between settings are checked nevertheless, so that one refusal lists every error.
    context.addIssue({ code: 'custom', message, continue: true })
    return z.NEVER
  })

export function integerSetting(min: number, max = Number.MAX_SAFE_INTEGER) {
  const isOpen = max === Number.MAX_SAFE_INTEGER
  return setting(
    (text) => {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : -1
      return value >= min && value <= max ? value : undefined
    },
    `must be a whole number ${isOpen ? `of at least ${min}` : `from ${min} to ${max}`}`,
  )
}

/** A comma-separated list, without blanks and empty parts. */
export const listSetting = (isValid: (part: string) => boolean, message: string) =>
  setting((text) => {
    const parts = splitList(text)
    return parts.every(isValid) ? parts : undefined
  }, message).default([])

const splitList = (text: string) => text.split(',').flatMap((part) => part.trim() || [])

export const booleanSetting = z.stringbool({ error: 'must be true or false' })

export const urlSetting = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })

/** `true`, `false`, a number of hops, or addresses and networks. */
function readTrustProxy(text: string): TrustProxy | undefined {
  if (text === 'true' || text === 'false') return text === 'true'
  if (/^[0-9]+$/.test(text)) return (_address, hop) => hop < Number(text)
  const proxies = splitList(text)
  const isValid = proxies.every((each) => Proxies.safeParse(each).success && !each.endsWith('/0'))
  return isValid && proxies.length > 0 ? proxies : undefined
}

// As Fastify accepts: an address, a network, or a name for a private range.
const PrivateRange = z.enum(['loopback', 'linklocal', 'uniquelocal'])
const Proxies = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), PrivateRange])

/** The settings of every service, as zod shapes to spread into its schema. */
export const serverSettings = (defaults: { port: number; dataDir: string }) => ({
  NODE_ENV: z.string().default('development'),
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: integerSetting(0, 65_535).default(defaults.port),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  TRUST_PROXY: setting(
    readTrustProxy,
    'must be true, false, a number of hops, or addresses such as 10.0.0.0/8',
  ).default(false),
  CORS_ORIGIN: listSetting(isOrigin, 'must be origins such as https://console.example.com'),
  METRICS_TOKEN: z.string().optional(),
  DATA_DIR: z.string().default(defaults.dataDir),
  BACKUP_DIR: z.string().optional(),
  MAX_CONNECTIONS: integerSetting(1).default(defaultLimits.maxConnections),
  HEADERS_TIMEOUT_MS: integerSetting(1, 120_000).default(defaultLimits.headersTimeoutMs),
  STALL_TIMEOUT_MS: integerSetting(1, 3_600_000).default(defaultLimits.stallTimeoutMs),
  BODY_IDLE_TIMEOUT_MS: integerSetting(10, 3_600_000).default(defaultLimits.bodyIdleTimeoutMs),
  MAX_BODY_MEMORY_BYTES: integerSetting(65_536).default(defaultLimits.maxBodyMemoryBytes),
})

// As browsers send it: with a scheme, in lower case, without a path. Anything else (a trailing slash, *) would never match.
const isOrigin = (text: string) => /^[a-z][a-z\d+.-]*:\/\/[^/?#\sA-Z*]+$/.test(text)

type ServerSettings = z.output<z.ZodObject<ReturnType<typeof serverSettings>>>

type CamelCase<Name extends string> = Name extends `${infer Word}_${infer Rest}`
  ? `${Lowercase<Word>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name>

export type Named<Settings, Prefix extends string = ''> = {
  [Name in keyof Settings as Name extends `${Prefix}${infer Rest}` ? CamelCase<Rest> : never]: Settings[Name]
}

const inCamelCase = (name: string) => name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())

/** The settings with this prefix by the rest of their names in camel case: `timeoutMs` for S3_TIMEOUT_MS. */
export const named = <Settings extends object, Prefix extends string = ''>(settings: Settings, prefix = '' as Prefix) =>
  Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[inCamelCase(name.slice(prefix.length)), value]] : [],
    ),
  ) as Named<Settings, Prefix>

/** What a service's config has of `serverSettings` beside their values. */
export const serverConfig = (settings: ServerSettings, env: Environment = {}) => ({
  production: settings.NODE_ENV === 'production',
  metricsToken: settings.METRICS_TOKEN && followSecret('METRICS_TOKEN', env, settings.METRICS_TOKEN),
})

const isDatabaseUrl = (text: string) => /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text)
const databaseUrl = z
  .string()
  .refine(isDatabaseUrl, 'must be a URL such as postgres://user:password@host:5432/database')
  .optional()

/** The settings of a service that can store its data in PostgreSQL, as zod shapes to spread into its schema. */
export const databaseSettings = {
  DATABASE_URL: databaseUrl,
  DATABASE_DIRECT_URL: databaseUrl,
  DATABASE_MAX_CONNECTIONS: integerSetting(2, 10_000).default(10),
  DATABASE_TIMEOUT_MS: integerSetting(100, 600_000).default(5000),
}

type DatabaseSettings = z.output<z.ZodObject<typeof databaseSettings>>

/** The part of a service's config that `databaseSettings` gives; undefined without DATABASE_URL. */
export function databaseConfig(settings: DatabaseSettings) {
  const { url, ...options } = named(settings, 'DATABASE_')
  return url === undefined ? undefined : { url, ...options }
}

/** For a command whose DATABASE_URL is set. @throws {InvalidEnvironment} */
export function readDatabaseConfig(env: Environment) {
  const config = databaseConfig(readEnv(z.object(databaseSettings), env))
  if (!config) throw new InvalidEnvironment(['DATABASE_URL: is not set'])
  return config
}

export type Environment = Record<string, string | undefined>

/**
 * Parses the environment by one schema. An empty variable counts as absent. `NAME_FILE` can name a file with the value of
 * NAME, such as a mounted container secret. Warns of variables that look like misspelled settings. `rules`
 * find what is wrong between settings: a message by the name of one.
 * @throws {InvalidEnvironment} listing every error.
 */
export function readEnv<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment,
  ...rules: ((settings: z.output<Schema>) => Record<string, unknown>)[]
): z.output<Schema> {
  const errors: string[] = []
  const values: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    // Names such as USERS_FILE are settings of their own.
    const file = `${name}_FILE` in schema.shape ? undefined : env[`${name}_FILE`]
    const value = env[name] || (file && readSettingFile(name, file, errors))
    if (value) values[name] = value
  }
  const ruled = schema.superRefine((settings, context) => {
    for (const [name, message] of rules.flatMap((rule) => Object.entries(rule(settings))))
      if (message) context.addIssue({ code: 'custom', path: [name], message: String(message) })
  })
  const result = ruled.safeParse(values, {
    error: describeIssue,
    reportInput: true,
    jitless: true, // Compiling a parser takes longer than parsing once.
  })
  if (!result.success) {
    errors.push(...result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`))
  }
  const misspelled = findMisspelled(Object.keys(schema.shape), env)
  if (!result.success || errors.length > 0) throw new InvalidEnvironment([...errors, ...misspelled])
  for (const warning of misspelled) process.emitWarning(warning)
  return result.data
}

/** Lists the errors of the environment, one a line, without any value. */
export class InvalidEnvironment extends StartRefusedError {
  constructor(errors: string[]) {
    super(`The environment is not valid:\n${errors.map((error) => `  - ${error}`).join('\n')}`)
  }
}

function readSettingFile(name: string, file: string, errors: string[]) {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    errors.push(`${name}_FILE: cannot be read by this process, of user ${process.getuid?.()} (${codeOf(error)})`)
    return undefined
  }
}

/**
 * Returns a getter for the present value of a secret. A file named by `NAME_FILE` is read each time, so that a key can be
 * rotated without a restart. An unreadable or empty file leaves the last value.
 */
export function followSecret(name: string, env: Environment, initial: string): () => string {
  const file = env[name] ? undefined : env[`${name}_FILE`]
  let value = initial
  return () => {
    try {
      if (file) value = readFileSync(file, 'utf8').trim() || value
    } catch {
      // The file is missing or being replaced: keep the last value.
    }
    return value
  }
}

function findMisspelled(settings: string[], env: Environment): string[] {
  const known = new Set(settings.flatMap((name) => [name, `${name}_FILE`]))
  return Object.keys(env).flatMap((name) => {
    const isUnknown = env[name] && !known.has(name)
    const meant = isUnknown && settings.find((setting) => isNearly(name, setting))
    return meant ? `${name} is not a setting: did you mean ${meant}?` : []
  })
}

// One letter added, removed, replaced or moved; underscores ignored. Names under 5 letters are too similar.
function isNearly(name: string, setting: string): boolean {
  const [a, b] = [name.replaceAll('_', ''), setting.replaceAll('_', '')]
  if (Math.min(a.length, b.length) < 5 || Math.abs(a.length - b.length) > 1) return false
  return !withoutOneLetter(a).isDisjointFrom(withoutOneLetter(b))
}

/** A text, and what each removal of one of its letters leaves. */
const withoutOneLetter = (text: string) =>
  new Set([text, ...Array.from(text, (_, at) => text.slice(0, at) + text.slice(at + 1))])
