import { runOnServer } from './postgres/test-database.ts'

export const password = 'correct horse battery'

// Made once and kept here: to hash a password takes longer than a service takes to start.
const admin = {
  username: 'admin',
  role: 'admin',
  password: '$argon2id$v=19$m=19456,t=2,p=1$c2FsdCBvZiB0aGUgdGVzdA$bxkjzij1aOcqDMDty0h7IjjqNF2MNfdWGHBpag5VTAk',
  id: '3f0c6f52-6f8b-4c53-9d54-6a0f2c1f7c11',
  created_at: '2026-01-01T00:00:00.000Z',
}

interface TestUser {
  username: string
  role: string
  domains?: string[]
  writes?: 'propose'
}

/** The text of a users file: `admin`, and others who have the same password. */
export const usersFileOf = (others: TestUser[]): string =>
  JSON.stringify({ users: [admin, ...others.map((user) => ({ ...admin, ...user }))] })

/** Stores the users of a users file's text in the schema of a service. */
export async function storeUsers(url: string, schema: string, usersFile: string) {
  await runOnServer(
    url,
    `insert into ${schema}.users (username, position, definition)
     select value ->> 'username', ordinality, value::text
     from jsonb_array_elements($1::jsonb -> 'users') with ordinality
     on conflict (username) do update set definition = excluded.definition`,
    [usersFile],
  )
}
