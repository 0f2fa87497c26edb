import { runOnServer } from './test-database.ts'

/** Stores the users of a users file's text in the schema of a service. */
export async function storeUsers(url: string, schema: string, usersFile: string) {
  await runOnServer(
    url,
    `insert into ${schema}.users (username, definition)
     select value ->> 'username', value::text from jsonb_array_elements($1::jsonb -> 'users')
     on conflict (username) do update set definition = excluded.definition`,
    [usersFile],
  )
}
