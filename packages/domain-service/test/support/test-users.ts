import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { storeUsers, usersFileOf } from '../../../../test/support/test-users.ts'

const users = usersFileOf([
  { username: 'editor', role: 'editor' },
  { username: 'viewer', role: 'viewer' },
  { username: 'proposer', role: 'editor', writes: 'propose' },
  { username: 'limited', role: 'editor', domains: ['example.com', '*.co.uk'] },
])

/** Writes the users of the tests to a file, if it does not exist. */
export function writeUsersFile(file: string) {
  if (existsSync(file)) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, users)
}

/** The same in a database. */
export const addUsers = (url: string): Promise<void> => storeUsers(url, 'domain_service', users)
