import { isIPv4 } from 'node:net'
import { authConfig, authRules, authSettings } from '@domains-and-files/auth'
import { webhookSettings } from '@domains-and-files/events'
import {
  booleanSetting,
  databaseConfig,
  databaseSettings,
  followSecret,
  integerSetting,
  listSetting,
  named,
  readEnv,
  serverConfig,
  serverSettings,
  setting,
  urlSetting,
} from '@domains-and-files/http'
import { z } from 'zod'
import { parseRate } from './budget/call-windows.ts'
import { parseRecordPatterns } from './zones/zone-watch.ts'

export const Settings = z.object({
  ...serverSettings({ port: 3001, dataDir: 'data/domain-service' }),
  ...authSettings,
  ...databaseSettings,
  ...webhookSettings,
  SANDBOX_URL: urlSetting.default('http://127.0.0.1:3003/xml.response'),
  REGISTRAR_URL: urlSetting.optional(),
  REGISTRAR_API_USER: z.string().min(1).optional(),
  REGISTRAR_API_KEY: z.string().min(1).optional(),
  REGISTRAR_USERNAME: z.string().min(1).optional(),
  REGISTRAR_CLIENT_IP: z.string().refine(isIPv4, 'must be an IPv4 address: the registrar accepts no other').optional(),
  REGISTRAR_RATE: setting(parseRate, 'must be like 20/minute,700/hour,8000/day').prefault(
    '20/minute,700/hour,8000/day',
  ),
  REGISTRAR_TIMEOUT_MS: integerSetting(1, 120_000).default(15_000),
  CACHE_TTL_MS: integerSetting(0, 3_600_000).default(30_000),
  DOMAINS_TTL_MS: integerSetting(1_000, 86_400_000).default(300_000),
  VERIFY_WRITES: booleanSetting.default(true),
  ACME_MAX_AGE: integerSetting(300, 31_536_000).default(86_400),
  EXTERNAL_DNS_DOMAINS: listSetting(() => true, '').transform((names) =>
    names.length > 0 ? names.map((name) => name.toLowerCase()) : undefined,
  ),
  DRIFT_INTERVAL_S: integerSetting(0, 31_536_000).default(21_600),
  DRIFT_IGNORE: setting(
    parseRecordPatterns,
    'must be a list such as home.example.com:A,*:_acme-challenge*:TXT',
  ).default([]),
  HISTORY_DAYS: integerSetting(0, 36_500).default(0),
})

/** The default credentials of the bundled sandbox. */
const sandbox = { apiUser: 'sandbox', apiKey: 'sandbox-key-for-development-only', clientIp: '127.0.0.1' }

const accountSettings = ['REGISTRAR_URL', 'REGISTRAR_API_USER', 'REGISTRAR_API_KEY', 'REGISTRAR_CLIENT_IP'] as const

export type Config = ReturnType<typeof readConfig>

/** @throws {InvalidEnvironment} listing every error. */
export function readConfig(env: Record<string, string | undefined>) {
  const settings = readEnv(Settings, env, requireAccount, authRules)
  return {
    ...named(settings),
    ...serverConfig(settings, env),
    ...authConfig(settings),
    /** PostgreSQL; undefined: SQLite and files in DATA_DIR. */
    database: databaseConfig(settings),
    webhooks: named(settings, 'WEBHOOK_'),
    account: accountOf(settings, env),
  }
}

/** The account, and which registrar it is: `sandbox`, or the host of its API. */
function accountOf(settings: z.output<typeof Settings>, env: Record<string, string | undefined>) {
  const {
    url = settings.SANDBOX_URL,
    apiUser = sandbox.apiUser,
    apiKey = sandbox.apiKey,
    username: userName = apiUser,
    clientIp = sandbox.clientIp,
  } = named(settings, 'REGISTRAR_')
  const registrar = url === settings.SANDBOX_URL ? 'sandbox' : new URL(url).host
  const readApiKey = followSecret('REGISTRAR_API_KEY', env, apiKey)
  return { registrar, url, apiUser, readApiKey, userName, clientIp }
}

// Production, or any of these four set, requires all four.
function requireAccount(settings: z.output<typeof Settings>) {
  const isProduction = settings.NODE_ENV === 'production'
  const missing = accountSettings.filter((name) => !settings[name])
  if (!isProduction && missing.length === accountSettings.length) return {}
  const message = 'is required in production, and where another setting of the account is set'
  return Object.fromEntries(missing.map((name) => [name, message]))
}
