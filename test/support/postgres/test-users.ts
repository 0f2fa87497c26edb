import { runOnServer } from './test-database.ts'

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
