import { z } from 'zod'
import { integerSetting } from './server-settings.ts'

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
export const databaseConfig = (settings: DatabaseSettings) =>
  settings.DATABASE_URL === undefined
    ? undefined
    : {
        url: settings.DATABASE_URL,
        directUrl: settings.DATABASE_DIRECT_URL,
        maxConnections: settings.DATABASE_MAX_CONNECTIONS,
        timeoutMs: settings.DATABASE_TIMEOUT_MS,
      }

function isDatabaseUrl(text: string) {
  return /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text)
}
