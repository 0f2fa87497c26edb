import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { runOnServer } from '../../../../test/support/postgres/test-database.ts'
import { storeUsers } from '../../../../test/support/postgres/test-users.ts'

// Passwords are hashed once per worker: hashing takes longer than the rest of a start.
let users: string | undefined

const Users = z.object({ users: z.array(z.looseObject({ username: z.string() })) })

const others = [
  { username: 'editor', role: 'editor' },
  { username: 'viewer', role: 'viewer' },
  { username: 'proposer', role: 'editor', writes: 'propose' },
  { username: 'limited', role: 'editor', domains: ['example.com', '*.co.uk'] },
]

/** Writes the users of the tests, if their hashes are known already and the file does not exist. */
export function prepareUsersFile(file: string) {
  if (users === undefined || existsSync(file)) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, users)
}

/** Adds the users of the tests to a file that has only the admin, with the admin's own password. */
export function addUsersToFile(file: string) {
  const found = Users.parse(JSON.parse(readFileSync(file, 'utf8'))).users
  if (found.length > 1) return
  users ??= addOthers(found)
  writeFileSync(file, users)
}

/** The same in a database. */
export async function addUsersToDatabase(url: string) {
  const found = await runOnServer<{ definition: string }>(
    url,
    'select definition from domain_service.users',
  )
  if (found.length > 1) return
  users ??= addOthers(found.map(({ definition }) => JSON.parse(definition)))
  await storeUsers(url, 'domain_service', users)
}

function addOthers([admin]: { username: string }[]): string {
  return JSON.stringify({ users: [admin, ...others.map((user) => ({ ...admin, ...user }))] })
}
