import { readFileSync, statSync } from 'node:fs'
import type { z } from 'zod'
import { describeIssue } from '../requests/validation.ts'
import { StartRefusedError } from '../start-service.ts'

export type Environment = Record<string, string | undefined>

/**
 * Parses the environment by one schema. An empty variable counts as absent. For a secret NAME, `NAME_FILE` can name a
 * file with its value, such as a mounted container secret. Warns of variables that look like misspelled settings.
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
  const result = schema.safeParse(values, {
    ...{ error: describeIssue, reportInput: true },
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

const secrets = new Set([
  'JWT_SECRET',
  'JWT_SECRET_PREVIOUS',
  'ADMIN_PASSWORD',
  'REGISTRAR_API_KEY',
  'METRICS_TOKEN',
  'OIDC_CLIENT_SECRET',
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
])

function readSecretFile(name: string, file: string | undefined, errors: string[]) {
  // Other names in _FILE, such as USERS_FILE, are settings of their own.
  if (!file || !secrets.has(name)) return undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    errors.push(
      `${name}_FILE: cannot be read by this process, of user ${process.getuid?.()}${reason}`,
    )
    return undefined
  }
}

/**
 * Returns a getter for the present value of a secret. A file named by `NAME_FILE` is read again when it changes, so that
 * a key can be rotated without a restart. An unreadable or empty file leaves the last value.
 */
export function followSecret(name: string, env: Environment, initial: string): () => string {
  const file = env[name] ? undefined : env[`${name}_FILE`]
  if (!file) return () => initial
  let value = initial
  let seen = ''
  return () => {
    try {
      const { mtimeMs, size, ino } = statSync(file)
      const version = `${mtimeMs} ${size} ${ino}`
      if (version !== seen) value = readFileSync(file, 'utf8').trim() || value
      seen = version
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

// One letter added, removed or replaced, or two swapped; underscores ignored. Names under 5 letters are too similar.
function isNearly(name: string, setting: string): boolean {
  const [a, b] = [name.replaceAll('_', ''), setting.replaceAll('_', '')]
  if (Math.min(a.length, b.length) < 5 || Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start += 1
  const [restA, restB] = [a.slice(start), b.slice(start)]
  const swapped = (restA[1] ?? '') + (restA[0] ?? '') + restA.slice(2)
  return (
    restA.slice(1) === restB.slice(1) ||
    restA.slice(1) === restB ||
    restA === restB.slice(1) ||
    swapped === restB
  )
}
