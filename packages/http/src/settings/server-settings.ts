import { z } from 'zod'
import { defaultLimits } from '../limits/connections.ts'
import { splitList } from './split-list.ts'
import { trustProxySetting } from './trust-proxy.ts'

/** A setting that is a whole number in these bounds. */
export function integerSetting(min: number, max = Number.MAX_SAFE_INTEGER) {
  const message =
    max === Number.MAX_SAFE_INTEGER
      ? `must be a whole number of at least ${min}`
      : `must be a whole number from ${min} to ${max}`
  return z
    .string(message)
    .regex(/^\d{1,16}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
}

/** The settings of every service, as zod shapes to spread into its schema. */
export const serverSettings = (defaults: { port: number; dataDir: string }) => ({
  NODE_ENV: z.string().default('development'),
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: integerSetting(0, 65_535).default(defaults.port),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  TRUST_PROXY: trustProxySetting,
  CORS_ORIGIN: z
    .string()
    .default('')
    .transform(splitList)
    .refine((list) => list.every(isOrigin), 'must be origins such as https://console.example.com'),
  METRICS_TOKEN: z.string().optional(),
  DATA_DIR: z.string().default(defaults.dataDir),
  MAX_CONNECTIONS: integerSetting(1).default(defaultLimits.maxConnections),
  HEADERS_TIMEOUT_MS: integerSetting(1, 120_000).default(defaultLimits.headersTimeout),
  STALL_TIMEOUT_MS: integerSetting(1, 3_600_000).default(defaultLimits.stallTimeout),
})

// As browsers send it: with a scheme, in lower case, without a path. Others, also a trailing slash or *, never match.
const isOrigin = (text: string) => /^[a-z][a-z\d+.-]*:\/\/[^/?#\sA-Z*]+$/.test(text)

type ServerSettings = z.output<z.ZodObject<ReturnType<typeof serverSettings>>>

/** The part of a service's config that `serverSettings` gives. */
export const serverConfig = (settings: ServerSettings) => ({
  production: settings.NODE_ENV === 'production',
  address: { host: settings.HOST, port: settings.PORT },
  logLevel: settings.LOG_LEVEL,
  trustProxy: settings.TRUST_PROXY,
  corsOrigins: settings.CORS_ORIGIN,
  metricsToken: settings.METRICS_TOKEN,
  dataDir: settings.DATA_DIR,
  connections: {
    maxConnections: settings.MAX_CONNECTIONS,
    headersTimeout: settings.HEADERS_TIMEOUT_MS,
    stallTimeout: settings.STALL_TIMEOUT_MS,
  },
})
