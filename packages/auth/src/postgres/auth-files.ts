import type { Transaction } from '@domains-and-files/persistence'
import { z } from 'zod'
import { StoredToken } from '../api-tokens/stored-token.ts'
import { tokensFileName } from '../api-tokens/token-file.ts'
import { UserList } from '../users/user.ts'

const TokenList = z.object({ tokens: z.array(StoredToken) })

const usersFileName = 'users.json'

/** The users and API tokens of a schema as the files in which a data directory holds them, by name. */
export async function exportAuthFiles(snapshot: Transaction, schema: string) {
  const users = await snapshot.query<{ definition: unknown }>(
    `select definition from ${schema}.users order by position`,
  )
  const tokens = await snapshot.query<{ definition: object; last_used_at: Date | null }>(
    `select definition, last_used_at from ${schema}.api_tokens order by position`,
  )
  return {
    [usersFileName]: textOf({ users: users.map(({ definition }) => definition) }),
    [tokensFileName]: textOf({
      tokens: tokens.map(({ definition, last_used_at: at }) => ({
        ...definition,
        last_used_at: at?.toISOString() ?? null,
      })),
    }),
  }
}

/** Stores the users and API tokens of such files. */
export async function importAuthFiles(
  transaction: Transaction,
  schema: string,
  files: Record<string, string>,
) {
  const { users } = UserList.parse(JSON.parse(files[usersFileName] ?? '{"users":[]}'))
  for (const user of users) {
    await transaction.query(`insert into ${schema}.users (username, definition) values ($1, $2)`, [
      user.username,
      user,
    ])
  }
  const { tokens } = TokenList.parse(JSON.parse(files[tokensFileName] ?? '{"tokens":[]}'))
  for (const token of tokens) await insertToken(transaction, schema, token)
}

/** Stores a new API token. */
export async function insertToken(transaction: Transaction, schema: string, token: StoredToken) {
  const { last_used_at: lastUsedAt, ...definition } = token
  await transaction.query(
    `insert into ${schema}.api_tokens (id, digest, owner, definition, expires_at, last_used_at)
    values ($1, decode($2, 'hex'), $3, $4, $5, $6)`,
    [token.id, token.digest, token.owner, definition, token.expires_at, lastUsedAt],
  )
}

const textOf = (content: object) => `${JSON.stringify(content, null, 2)}\n`
