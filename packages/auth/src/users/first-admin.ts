import { randomBytes } from 'node:crypto'
import type { Role } from '../authorization.ts'
import { hashPassword, shortestPassword } from '../login/password.ts'
import { StartRefusedError } from '../start-refused.ts'
import { readUsersIfAny, updateUsers } from './users-file.ts'

interface FirstAdminOptions {
  username?: string | undefined
  password?: string | undefined
  production: boolean
  /** Told the random password, and what is weak; standard error unless said otherwise. */
  print?: (message: string) => void
}

/**
 * Sees that the users file holds somebody before a service starts: the admin that is asked for or, outside production,
 * one with a random password, which is printed. Changes nothing once there are users. Of several services that start
 * at once on one file, one makes the admin and the others find it.
 * @throws {StartRefusedError} when there is nobody and nobody may be made up.
 */
export async function ensureFirstAdmin(file: string, options: FirstAdminOptions): Promise<void> {
  const { username, password, production, print = printLine } = options
  if (readUsersIfAny(file).length > 0) return
  if (!username !== !password) {
    throw new StartRefusedError(
      'There are no users yet: set both ADMIN_USERNAME and ADMIN_PASSWORD, or neither.',
    )
  }
  if (!username && production) {
    throw new StartRefusedError(
      `There are no users in ${file}: set ADMIN_USERNAME and ADMIN_PASSWORD, or add one with \`pnpm users add\`.`,
    )
  }

  const name = username ?? 'admin'
  const words = password ?? randomBytes(15).toString('base64url')
  const isMade = addFirst(file, { username: name, password: await hashPassword(words) })
  if (!isMade) return
  if (!password) print(`Made the user ${name} with the password ${words} (it is not shown again).`)
  if (words.length < shortestPassword) {
    print(`ADMIN_PASSWORD is shorter than ${shortestPassword} characters: choose a longer one.`)
  }
}

function addFirst(file: string, admin: { username: string; password: string }): boolean {
  let isMade = false
  updateUsers(file, (users) => {
    isMade = users.length === 0
    return isMade ? [{ ...admin, role: 'admin' satisfies Role }] : users
  })
  return isMade
}

function printLine(message: string) {
  process.stderr.write(`${message}\n`)
}
