import { existsSync, readFileSync } from 'node:fs'
import { describeIssue, StartRefusedError } from '@domains-and-files/http'
import { updateFile } from '@domains-and-files/persistence'
import { z } from 'zod'
import { canonicalDomain, Role } from '../authorization.ts'
import { parsePhc } from '../login/password.ts'

/**
 * A username. Names are compared exactly (`Alice` is not `alice`) after NFC normalization, so that a name does not
 * depend on the keyboard that typed it.
 */
export const Username = z
  .string()
  .normalize('NFC')
  .min(1, 'must not be empty')
  .max(64, 'must have at most 64 characters')
  .regex(/^[^\p{C}\p{Z}]+$/u, 'must have no spaces and no control characters')

export const Domains = z
  .array(z.string('must be a string').transform(readDomain), 'must be a list of domains')
  .min(1, 'must name at least one domain')

export const User = z.strictObject({
  username: Username,
  role: Role,
  password: z.string().refine(parsePhc, 'must be an argon2id PHC string'),
  domains: Domains.optional(),
  /** Distinguishes a user from an earlier one of that name. Absent in files written by hand. */
  id: z.string().optional(),
})
export type User = z.infer<typeof User>

const UsersFile = z.strictObject({
  users: z.array(User).refine(areNamesUnique, 'must not name a user twice'),
})

/** @throws {InvalidUsersFile} if the file cannot be read or is not valid. */
export function readUsers(file: string): User[] {
  return parseUsers(file, readText(file))
}

/** As `readUsers`; a missing file has no users. */
export const readUsersIfAny = (file: string): User[] => (existsSync(file) ? readUsers(file) : [])

/** The users file cannot be used. The message names the reason and quotes no content. */
export class InvalidUsersFile extends StartRefusedError {
  constructor(file: string, cause: unknown) {
    super(`Cannot use the users file ${file}: ${explain(cause)}`)
  }
}

/**
 * Replaces the users by the result of `change`, atomically and under a lock between processes. Nothing changes if
 * `change` throws or the file is invalid.
 */
export async function updateUsers(file: string, change: (users: User[]) => User[]): Promise<void> {
  await updateFile(file, (text) => {
    const before = text === undefined ? [] : parseUsers(file, text)
    const users = UsersFile.parse({ users: change(before) })
    return `${JSON.stringify(users, null, 2)}\n`
  })
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new InvalidUsersFile(file, error)
  }
}

function parseUsers(file: string, text: string): User[] {
  try {
    return UsersFile.parse(JSON.parse(text), { error: describeIssue }).users
  } catch (error) {
    throw new InvalidUsersFile(file, error)
  }
}

function readDomain(text: string, context: z.RefinementCtx) {
  const domain = canonicalDomain(text)
  if (domain) return domain
  context.addIssue({ code: 'custom', message: 'must be a domain, or one after *.' })
  return z.NEVER
}

function areNamesUnique(users: { username: string }[]) {
  return new Set(users.map(({ username }) => username)).size === users.length
}

function explain(error: unknown): string {
  if (error instanceof z.ZodError) {
    return error.issues.map(({ path, message }) => [...path, message].join(' ')).join('; ')
  }
  // A JSON error quotes the text around the fault, which may be a password hash.
  if (error instanceof SyntaxError) return 'it is not JSON'
  return error instanceof Error ? error.message : String(error)
}
