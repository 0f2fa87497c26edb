import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { connect } from './databases.ts'

const others = [
  { username: 'editor', role: 'editor' },
  { username: 'viewer', role: 'viewer' },
  { username: 'limited', role: 'editor', domains: ['example.com', '*.co.uk'] },
]

/** Adds the users of the tests to a file that has the admin, with the admin's own password. */
export function addUsersToFile(file: string) {
  const Users = z.object({ users: z.array(z.looseObject({ username: z.string() })) })
  const { users } = Users.parse(JSON.parse(readFileSync(file, 'utf8')))
  const [admin] = users
  const all = [...users, ...others.map((user) => ({ ...admin, ...user }))]
  if (users.length === 1) writeFileSync(file, JSON.stringify({ users: all }))
}

/** The same in a database. */
export async function addUsersToDatabase(url: string) {
  await using database = await connect(url)
  await database.query(
    `insert into domain_service.users (username, definition)
     select value ->> 'username', definition || value
     from domain_service.users, jsonb_array_elements($1::jsonb) where username = 'admin'
     on conflict do nothing`,
    [JSON.stringify(others)],
  )
}
