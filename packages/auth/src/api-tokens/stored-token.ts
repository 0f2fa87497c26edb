import { z } from 'zod'
import { Role } from '../authorization.ts'
import { Domains, Username } from '../users/user.ts'
import { Network } from './networks.ts'
import { RecordLimit } from './record-limits.ts'

export const TokenName = z
  .string()
  .trim()
  .regex(/^[^\p{Cc}]{1,100}$/u, 'must have 1 to 100 characters, without control characters')

/** The limits of a token; an absent one does not limit. */
export const tokenLimits = {
  role: Role.optional(),
  domains: Domains.max(100).optional(),
  records: z.array(RecordLimit).min(1).max(100).optional(),
  networks: z.array(Network).min(1).max(100).optional(),
}

/** An API token as it is stored, by its digest only. */
export const StoredToken = z.strictObject({
  id: z.uuid(),
  name: TokenName,
  /** SHA-256 of the token, in hex. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  /** The last four characters of the token. */
  hint: z.string(),
  owner: Username,
  /** The `id` of the owner, if it has one: a new user of the same name does not inherit tokens. */
  owner_id: z.string().optional(),
  ...tokenLimits,
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().nullable(),
  last_used_at: z.iso.datetime().nullable(),
})
export type StoredToken = z.infer<typeof StoredToken>

/** What a new token may do, and for how long. */
export interface TokenRequest extends Partial<z.infer<z.ZodObject<typeof tokenLimits>>> {
  name: string
  /** Seconds; 0: never. Default: 90 days. */
  expires_in?: number | undefined
}

/** Where API tokens are stored. */
export interface TokenStore {
  /** The token with this digest, compared in constant time. */
  find(digest: string): Promise<StoredToken | undefined>
  /** Tokens of one owner, or all; oldest first. */
  list(owner?: string): Promise<StoredToken[]>
  /** Also removes tokens that expired more than 30 days ago. */
  add(token: StoredToken): Promise<void>
  /** Removes a token, only of this owner if given. @returns whether there was one. */
  remove(id: string, owner?: string): Promise<boolean>
  /** Records a use. May lose it in a crash. */
  touch(id: string, at: Date): void
  /** Writes what `touch` recorded. */
  close(): Promise<void>
}
