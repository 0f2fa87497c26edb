import { randomUUID } from 'node:crypto'
import { type Caller, intersectDomains, lowerRole, type Role } from '../authorization.ts'
import type { User } from '../users/user.ts'
import { refuseEscalation } from './escalation.ts'
import { isInNetworks } from './networks.ts'
import type { StoredToken, TokenRequest, TokenStore } from './stored-token.ts'
import { tokenNotFound, tokensNotStored, tooManyTokens } from './token-errors.ts'
import { createToken, digestOf } from './token-format.ts'

interface ApiTokensOptions {
  store: TokenStore
  find: (username: string) => Promise<User | undefined>
  /** `ds_` or `ss_`. */
  prefix: string
  /** Milliseconds since 1970. */
  now: () => number
}

const maxTokensPerOwner = 200
const touchIntervalMs = 60_000
const defaultLifetime = 90 * 86_400

/** Creates, verifies, lists and revokes the API tokens of a service. */
export class ApiTokens {
  readonly prefix: string
  readonly #options: ApiTokensOptions
  /** Last recorded use by token id, ahead of the store. */
  readonly #touched = new Map<string, number>()

  constructor(options: ApiTokensOptions) {
    this.#options = options
    this.prefix = options.prefix
  }

  /**
   * The caller that a token identifies, with at most the rights that its owner has now. From outside its networks a
   * token is invalid, as if unknown.
   */
  async verify(text: string, address: string): Promise<Caller | 'invalid' | 'expired'> {
    const { store, find, now } = this.#options
    const token = await store.find(digestOf(text))
    if (!token) return 'invalid'
    if (token.networks && !isInNetworks(address, token.networks)) return 'invalid'
    const owner = await find(token.owner)
    if (!owner || owner.id !== token.owner_id) return 'invalid'
    if (token.expires_at && Date.parse(token.expires_at) <= now()) return 'expired'
    this.#touch(token)
    return callerOf(token, owner)
  }

  /** @returns the stored record and the token itself, which is not stored. @throws {HttpError} */
  async create(owner: Caller, request: TokenRequest) {
    refuseEscalation(owner, request)
    const { store, find, now } = this.#options
    if ((await store.list(owner.username)).length >= maxTokensPerOwner)
      throw tooManyTokens(maxTokensPerOwner)
    const { expires_in: lifetime = defaultLifetime, name, ...limits } = request
    const text = createToken(this.prefix)
    const at = now()
    const ownerId = (await find(owner.username))?.id
    const token: StoredToken = {
      id: randomUUID(),
      name,
      digest: digestOf(text),
      hint: text.slice(-4),
      owner: owner.username,
      ...(ownerId !== undefined && { owner_id: ownerId }),
      ...limits,
      created_at: new Date(at).toISOString(),
      expires_at: lifetime === 0 ? null : new Date(at + lifetime * 1000).toISOString(),
      last_used_at: null,
    }
    await store.add(token).catch(refuseUnstored)
    return { text, token }
  }

  list(owner?: string): Promise<StoredToken[]> {
    return this.#options.store.list(owner)
  }

  /** Revokes a token at once; without `owner`, anybody's. @throws {HttpError} if there is none. */
  async remove(id: string, owner?: string) {
    const isRemoved = await this.#options.store.remove(id, owner).catch(refuseUnstored)
    if (!isRemoved) throw tokenNotFound(id)
  }

  close(): Promise<void> {
    return this.#options.store.close()
  }

  #touch({ id, last_used_at }: StoredToken) {
    const now = this.#options.now()
    const last = Math.max(this.#touched.get(id) ?? 0, last_used_at ? Date.parse(last_used_at) : 0)
    if (now - last < touchIntervalMs) return
    this.#touched.set(id, now)
    this.#options.store.touch(id, new Date(now))
  }
}

function refuseUnstored(cause: unknown): never {
  throw tokensNotStored(cause)
}

function callerOf(token: StoredToken, owner: User): Caller {
  const { id, name, records, expires_at } = token
  const domains = intersectDomains(owner.domains, token.domains)
  return {
    username: owner.username,
    role: lowerRole(roleOf(token), owner.role),
    ...(domains && { domains }),
    ...(expires_at && { expiresAt: new Date(expires_at) }),
    token: {
      id,
      name,
      ...(records && { records }),
      readsAll: !records || token.role !== undefined,
    },
  }
}

// `records` grant writing what they name, so such a token passes the editor routes that enforce them.
function roleOf({ role, records }: StoredToken): Role {
  if (records) return role === 'admin' ? 'admin' : 'editor'
  return role ?? 'viewer'
}
