import { randomBytes, randomUUID } from 'node:crypto'
import { StartRefusedError } from '@domains-and-files/http'
import { hashPassword, minPasswordLength } from '../login/password.ts'
import type { Users } from './user.ts'

interface FirstAdminOptions {
  username?: string | undefined
  password?: string | undefined
  production: boolean
  /** Receives a generated password, and warnings. Default: standard error. */
  print?: (message: string) => void
}

/**
 * Creates the first admin if there are no users: from the settings or, outside production, with a random printed
 * password. If several services start together on one store, exactly one creates it.
 * @throws {StartRefusedError} in production without settings, or when only one of the two settings is given.
 */
export async function ensureFirstAdmin(store: Users, options: FirstAdminOptions): Promise<void> {
  const { username, password, production, print = console.error } = options
  if ((await store.list()).length > 0) return
  if (!username !== !password) {
    throw new StartRefusedError(
      'There are no users yet: set both ADMIN_USERNAME and ADMIN_PASSWORD, or neither.',
    )
  }
  if (!username && production) {
    throw new StartRefusedError(
      `There are no users in ${store.name}: set ADMIN_USERNAME and ADMIN_PASSWORD, or add one with \`npm run users -- add\`.`,
    )
  }

  const name = username ?? 'admin'
  const secret = password ?? randomBytes(15).toString('base64url')
  const credentials = { id: randomUUID(), password: await hashPassword(secret) }
  let isCreated = false
  await store.update((users) => {
    isCreated = users.length === 0
    return isCreated ? [{ username: name, role: 'admin', ...credentials }] : users
  })
  if (!isCreated) return
  if (!password)
    print(`Created the user ${name} with the password ${secret} (it is not shown again).`)
  if (secret.length < minPasswordLength) {
    print(`ADMIN_PASSWORD is shorter than ${minPasswordLength} characters: choose a longer one.`)
  }
}
