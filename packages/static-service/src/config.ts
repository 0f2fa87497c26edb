import { authConfig, authRules, authSettings } from '@domains-and-files/auth'
import { webhookSettings } from '@domains-and-files/events'
import {
  booleanSetting,
  databaseConfig,
  databaseSettings,
  type Environment,
  followSecret,
  integerSetting,
  listSetting,
  named,
  readEnv,
  serverConfig,
  serverSettings,
  urlSetting,
} from '@domains-and-files/http'
import { z } from 'zod'
import type { CatalogOptions } from './catalog/changes/group.ts'
import { findPathFault } from './files/file-path.ts'

const bytes = integerSetting(0)
const days = integerSetting(0, 36_500)

// A header's value: visible ASCII and spaces (RFC 9110, 5.5).
const headerValue = z.string().regex(/^[\x20-\x7e]+$/, 'must be printable ASCII')

/** The settings of contents in S3, as zod shapes: for commands, too. */
export const s3Settings = {
  S3_BUCKET: z
    .string()
    .regex(/^[\w.-]{1,255}$/, 'must be the name of a bucket')
    .optional(),
  S3_ENDPOINT: urlSetting.optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_PREFIX: z
    .string()
    .regex(/^[\w.-]+(?:\/[\w.-]+)*$/, 'must be a path such as files or team/files')
    .default(''),
  S3_FORCE_PATH_STYLE: booleanSetting.optional(),
  S3_TIMEOUT_MS: integerSetting(100, 600_000).default(10_000),
  GARBAGE_GRACE_S: integerSetting(0, 31_536_000).default(86_400),
  AWS_ACCESS_KEY_ID: z.string().optional(),
  AWS_SECRET_ACCESS_KEY: z.string().optional(),
  AWS_SESSION_TOKEN: z.string().optional(),
}

export const Settings = z.object({
  ...serverSettings({ port: 3002, dataDir: 'data/static-service' }),
  ...authSettings,
  ...databaseSettings,
  ...s3Settings,
  ...webhookSettings,
  MAX_UPLOAD_BYTES: integerSetting(1).default(1_073_741_824),
  UPLOAD_EXPIRES_S: integerSetting(1, 2_592_000).default(86_400),
  MAX_BATCH_FILES: integerSetting(1, 1000).default(100),
  QUOTA_BYTES: bytes.optional(),
  STATIC_DEFAULT_ACCESS: z.enum(['public', 'private'], { error: 'must be public or private' }).default('public'),
  KEEP_HISTORY_DAYS: days.default(30),
  KEEP_VERSIONS: integerSetting(0, 10_000).default(20),
  HISTORY_DAYS: days.default(0),
  MAX_TREE_FILES: integerSetting(1, 1_000_000).default(20_000),
  MAX_TREE_BYTES: integerSetting(1).default(2_147_483_648),
  STATIC_CACHE_CONTROL: headerValue.default('public, max-age=0, must-revalidate'),
  STATIC_INDEX: z
    .string()
    .regex(/^[^/\\\p{Cc}]{1,100}$/u, 'must be a file name such as index.html')
    .optional(),
  STATIC_CSP: headerValue.default("sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"),
  STATIC_SITES: listSetting(isSite, 'must be directories such as docs/,previews/*'),
  SITE_GRACE_S: integerSetting(0, 31_536_000).default(86_400),
  STATIC_SITE_CSP: headerValue.default(
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'",
  ),
  MEMORY_CACHE_BYTES: bytes.default(67_108_864),
  STATIC_OFFLOAD: z.enum(['off', 'nginx', 'caddy'], { error: 'must be off, nginx or caddy' }).default('off'),
  STATIC_OFFLOAD_BYTES: bytes.default(262_145),
})

export type Config = ReturnType<typeof readConfig>

/**
 * Every variable of this service, with its rule and default.
 * @throws {InvalidEnvironment} listing every error.
 */
export function readConfig(env: Environment) {
  // An empty variable counts as absent, but an empty policy is one: none.
  const policies = Object.fromEntries(
    ['STATIC_CSP', 'STATIC_SITE_CSP'].filter((name) => env[name] === '').map((name) => [name, 'off']),
  )
  const variables = { ...env, ...policies }
  const settings = readEnv(Settings, variables, serviceRules, authRules)
  const { STATIC_OFFLOAD: to, STATIC_OFFLOAD_BYTES: minBytes } = settings
  return {
    ...named(settings),
    ...serverConfig(settings, env),
    ...authConfig(settings),
    /** PostgreSQL; undefined: SQLite and files in DATA_DIR. */
    database: databaseConfig(settings),
    /** Contents in S3; set if and only if `database` is. */
    s3: s3Config(settings, env),
    webhooks: named(settings, 'WEBHOOK_'),
    /** Milliseconds after which an unfinished resumable upload is removed. */
    uploadLifetimeMs: settings.UPLOAD_EXPIRES_S * 1000,
    /** Of a directory that is replaced as one thing. */
    trees: { maxFiles: settings.MAX_TREE_FILES, maxBytes: settings.MAX_TREE_BYTES },
    catalog: catalogConfig(settings),
    static: {
      cacheControl: settings.STATIC_CACHE_CONTROL,
      /** Outside of sites: file that answers for its directory; undefined: none. */
      index: settings.STATIC_INDEX,
      /** Outside of sites: Content-Security-Policy of HTML, SVG and XML; undefined: none. */
      csp: policyOf(settings.STATIC_CSP),
      sites: sitesOf(settings),
      /** Seconds for which files of sites that a deploy removed are served. */
      graceSeconds: settings.KEEP_HISTORY_DAYS === 0 ? 0 : settings.SITE_GRACE_S,
      memoryCacheBytes: settings.MEMORY_CACHE_BYTES,
      /** The proxy that sends large files; undefined: the service sends them. */
      offload: to === 'off' ? undefined : { to, minBytes },
    },
  }
}

const catalogConfig = (settings: z.output<typeof Settings>): CatalogOptions => ({
  quotaBytes: settings.QUOTA_BYTES,
  history: {
    keepDays: settings.KEEP_HISTORY_DAYS,
    keepVersions: settings.KEEP_VERSIONS,
    entryDays: settings.HISTORY_DAYS,
  },
})

// A directory with a trailing slash (`/` is the root), or with `/*` all that are directly below it.
function isSite(text: string) {
  const directory = text.replace(/\/\*$/, '/')
  return directory === '/' || (directory.endsWith('/') && findPathFault(directory.slice(0, -1)) === undefined)
}

const policyOf = (setting: string) => (setting === 'off' ? undefined : setting)

// The longest directory first: the innermost site is found first.
const sitesOf = ({ STATIC_SITES, STATIC_SITE_CSP, STATIC_INDEX }: z.output<typeof Settings>) =>
  STATIC_SITES.toSorted((one, other) => other.length - one.length).map((text) => ({
    /** Without slashes at its ends; the root is empty. */
    directory: text.replace(/\/\*?$/, ''),
    /** Each direct subdirectory is a site; this directory itself is not. */
    isParent: text.endsWith('*'),
    index: STATIC_INDEX ?? 'index.html',
    csp: policyOf(STATIC_SITE_CSP),
  }))

type S3Settings = z.output<z.ZodObject<typeof s3Settings>>

/** The bucket of `s3Settings`, if there is one. */
export function s3Config(settings: S3Settings, env: Environment) {
  const { bucket, ...options } = named(settings, 'S3_')
  if (bucket === undefined) return undefined
  return {
    bucket,
    ...options,
    // Of stores other than AWS, few have a host name for each bucket.
    forcePathStyle: options.forcePathStyle ?? options.endpoint !== undefined,
    graceSeconds: settings.GARBAGE_GRACE_S,
    credentials: credentialsOf(settings, env),
  }
}

// Both stores or none. Bodies are left to a trusted proxy only.
function serviceRules(settings: z.output<typeof Settings>) {
  const { DATABASE_URL, S3_BUCKET, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, TRUST_PROXY } = settings
  const isOffloading = settings.STATIC_OFFLOAD !== 'off'
  return {
    TRUST_PROXY: isOffloading && !TRUST_PROXY && 'must name the proxy that STATIC_OFFLOAD leaves bodies to',
    S3_BUCKET: DATABASE_URL && !S3_BUCKET && 'is required with DATABASE_URL',
    DATABASE_URL: S3_BUCKET && !DATABASE_URL && 'is required with S3_BUCKET',
    STATIC_OFFLOAD: isOffloading && S3_BUCKET && 'must be off with S3_BUCKET: there are no files to send',
    AWS_SECRET_ACCESS_KEY: AWS_ACCESS_KEY_ID && !AWS_SECRET_ACCESS_KEY && 'is required with AWS_ACCESS_KEY_ID',
  }
}

/** Undefined: the standard chain of the AWS SDK finds them, such as a role of the machine. */
function credentialsOf(settings: S3Settings, env: Environment) {
  if (!settings.AWS_ACCESS_KEY_ID || !settings.AWS_SECRET_ACCESS_KEY) return undefined
  const follow = (name: 'AWS_ACCESS_KEY_ID' | 'AWS_SECRET_ACCESS_KEY' | 'AWS_SESSION_TOKEN') =>
    followSecret(name, env, settings[name] ?? '')
  const readId = follow('AWS_ACCESS_KEY_ID')
  const readSecret = follow('AWS_SECRET_ACCESS_KEY')
  const readSession = follow('AWS_SESSION_TOKEN')
  return async () => ({
    accessKeyId: readId(),
    secretAccessKey: readSecret(),
    sessionToken: readSession(), // Empty: none, as for the SDK.
    expiration: new Date(), // The SDK asks again for the next request.
  })
}
