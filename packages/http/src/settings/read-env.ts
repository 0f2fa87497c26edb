import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { describeIssue } from '../requests/validation.ts'
import { StartRefusedError } from '../start-service.ts'

type Environment = Record<string, string | undefined>

/**
 * Parses the environment by one schema. An empty variable counts as absent. `NAME_FILE` names a file with the value of
 * the secret NAME, such as a secret mounted into a container.
 * @throws {InvalidEnvironment} listing every error.
 */
export function readEnv<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment,
): z.output<Schema> {
  const errors: string[] = []
  const values: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const value = env[name] || readSecretFile(name, env[`${name}_FILE`], errors)
    if (value) values[name] = value
  }
  const result = schema.safeParse(values, { error: describeIssue, reportInput: true })
  if (!result.success) {
    errors.push(...result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`))
  }
  if (!result.success || errors.length > 0) throw new InvalidEnvironment(errors)
  return result.data
}

/** Lists the errors of the environment, one a line, without any value. */
export class InvalidEnvironment extends StartRefusedError {
  constructor(errors: string[]) {
    super(`The environment is not valid:\n${errors.map((error) => `  - ${error}`).join('\n')}`)
  }
}

const secrets = new Set([
  'JWT_SECRET',
  'ADMIN_PASSWORD',
  'REGISTRAR_API_KEY',
  'METRICS_TOKEN',
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
])

function readSecretFile(name: string, file: string | undefined, errors: string[]) {
  // USERS_FILE and the like are settings of their own.
  if (!file || !secrets.has(name)) return undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    errors.push(`${name}_FILE: cannot be read`)
    return undefined
  }
}
