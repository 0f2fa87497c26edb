import { databaseConfig, databaseSettings, readEnv } from '@domains-and-files/http'
import { Postgres } from '@domains-and-files/persistence'
import { z } from 'zod'
import { authMigrations } from './auth-migrations.ts'

/** Whether users and API tokens are in PostgreSQL. */
export const usesDatabase = (env: NodeJS.ProcessEnv) =>
  Boolean(env.DATABASE_URL || env.DATABASE_URL_FILE)

/** The schema of a service's tables: `domain_service` or `static_service`. */
export const schemaOf = (service: string) => service.replace('-', '_')

/** Opens the database of DATABASE_URL for a command, with the tables of this package for one service. */
export async function openCommandDatabase(
  service: string,
  env: NodeJS.ProcessEnv,
): Promise<Postgres & AsyncDisposable> {
  const config = databaseConfig(readEnv(z.object(databaseSettings), env))
  if (!config) throw new Error('DATABASE_URL is not set')
  const schema = schemaOf(service)
  const database = await Postgres.open({
    ...config,
    schema,
    migrations: { auth: authMigrations(schema) },
    onError: () => undefined, // A statement that fails is reported by itself.
  })
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() })
}
