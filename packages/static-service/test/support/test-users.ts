import { usersFileOf } from '../../../../test/support/test-users.ts'

/** The users file of the services of the tests. */
export const users = usersFileOf([
  { username: 'editor', role: 'editor' },
  { username: 'viewer', role: 'viewer' },
])
