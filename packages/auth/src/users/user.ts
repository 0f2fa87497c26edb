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

export const UserList = z.strictObject({
  users: z.array(User).refine(areNamesUnique, 'must not name a user twice'),
})

/** A change of the users, checked. @throws {z.ZodError} */
export const changeUsers = (users: User[], change: (users: User[]) => User[]): User[] =>
  UserList.parse({ users: change(users) }).users

function readDomain(text: string, context: z.RefinementCtx) {
  const domain = canonicalDomain(text)
  if (domain) return domain
  context.addIssue({ code: 'custom', message: 'must be a domain, or one after *.' })
  return z.NEVER
}

function areNamesUnique(users: { username: string }[]) {
  return new Set(users.map(({ username }) => username)).size === users.length
}
