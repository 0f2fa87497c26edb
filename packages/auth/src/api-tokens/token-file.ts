import { timingSafeEqual } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { StartRefusedError } from '@domains-and-files/http'
import { FileView, updateFile } from '@domains-and-files/persistence'
import { z } from 'zod'
import { StoredToken, type TokenStore } from './stored-token.ts'

/** In DATA_DIR. */
export const tokensFileName = 'tokens.json'

const TokensFile = z.strictObject({ tokens: z.array(StoredToken) })

/** API tokens in a JSON file, shared with `npm run tokens`: each look-up sees the last change. */
export class TokenFile implements TokenStore {
  readonly #file: string
  readonly #report: (error: unknown) => void
  readonly #view: FileView<{ all: StoredToken[]; byDigest: Map<string, StoredToken> }>
  readonly #touched = new Map<string, string>()
  #flushing: Promise<void> | undefined

  /**
   * `report` receives errors of the background: an invalid file while running, or a failed write of `last_used_at`.
   * @throws {StartRefusedError} if the file is invalid now.
   */
  constructor(file: string, report: (error: unknown) => void) {
    this.#file = file
    this.#report = report
    const read = () => {
      const all = existsSync(file) ? parse(file, readFileSync(file, 'utf8')) : []
      return { all, byDigest: new Map(all.map((token) => [token.digest.slice(0, 16), token])) }
    }
    this.#view = new FileView(file, read, report)
  }

  async find(digest: string) {
    const token = this.#view.current.byDigest.get(digest.slice(0, 16))
    return token && isEqual(token.digest, digest) ? token : undefined
  }

  async list(owner?: string) {
    const { all } = this.#view.current
    return owner === undefined ? all : all.filter((token) => token.owner === owner)
  }

  async add(token: StoredToken) {
    const now = Date.parse(token.created_at)
    await this.#update((tokens) => [...tokens.filter((each) => !isLongExpired(each, now)), token])
  }

  async remove(id: string, owner?: string) {
    const isIt = (token: StoredToken) =>
      token.id === id && (owner === undefined || token.owner === owner)
    if (!this.#view.current.all.some(isIt)) return false
    let isRemoved = false
    await this.#update((tokens) => {
      isRemoved = tokens.some(isIt)
      return tokens.filter((token) => !isIt(token))
    })
    return isRemoved
  }

  touch(id: string, at: Date) {
    this.#touched.set(id, at.toISOString())
    this.#flushing ??= this.#flush().catch(this.#report)
  }

  async close() {
    await this.#flushing
  }

  // One write for all uses recorded while the previous write ran.
  async #flush() {
    try {
      while (this.#touched.size > 0) {
        const touched = new Map(this.#touched)
        this.#touched.clear()
        await this.#update((tokens) =>
          tokens.map((token) => ({
            ...token,
            last_used_at: touched.get(token.id) ?? token.last_used_at,
          })),
        )
      }
    } finally {
      this.#flushing = undefined
    }
  }

  #update(change: (tokens: StoredToken[]) => StoredToken[]): Promise<void> {
    return updateFile(this.#file, (text) => {
      const tokens = change(text === undefined ? [] : parse(this.#file, text))
      return `${JSON.stringify({ tokens }, null, 2)}\n`
    })
  }
}

const thirtyDays = 30 * 86_400_000

const isLongExpired = ({ expires_at }: StoredToken, now: number) =>
  expires_at !== null && Date.parse(expires_at) + thirtyDays < now

const isEqual = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

function parse(file: string, text: string): StoredToken[] {
  try {
    return TokensFile.parse(JSON.parse(text)).tokens
  } catch {
    throw new StartRefusedError(
      `The tokens file ${file} is not valid: restore it from a backup, or delete it to revoke all API tokens.`,
    )
  }
}
