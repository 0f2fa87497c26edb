import { randomUUID } from 'node:crypto'
import { HttpError } from '@domains-and-files/http'
import { isUniqueViolation, name, type Sql, sql } from '@domains-and-files/persistence'
import { z } from 'zod'
import { tokenLimits } from '../api-tokens/api-tokens.ts'
import { IssuerUrl } from '../issuer-url.ts'
import { type Caller, Role, rightsOfGrant } from '../rights.ts'
import { trustPrefix, Username } from '../users/user.ts'

/** Claims that identify a workload. Others, such as a branch, can be equal in tokens of unrelated workloads. */
const workloadClaims = [
  ...['sub', 'repository', 'repository_id', 'repository_owner', 'repository_owner_id'],
  ...['job_workflow_ref', 'workflow_ref', 'project_path', 'project_id'],
  ...['namespace_path', 'namespace_id', 'user_id', 'user_login', 'user_email'],
]

const claimText = z.string().min(1).max(500)

/** A new trust: which workloads may exchange tokens of its issuer, and the rights that they get. */
export const NewTrust = z.strictObject({
  name: Username,
  issuer: IssuerUrl.describe('of the tokens: `iss`'),
  audience: claimText.describe('that the tokens must be for: in `aud`'),
  claims: z
    .record(z.string().min(1).max(100), claimText)
    .refine((claims) => Object.keys(claims).length <= 20, 'must have at most 20 claims')
    .refine(
      (claims) => workloadClaims.some((claim) => Object.hasOwn(claims, claim)),
      'must have a claim that names one workload, such as sub, repository or project_path: anybody can get a token for any audience',
    )
    .describe('that the tokens must have, all of them, exactly'),
  role: Role,
  domains: tokenLimits.domains,
  folders: tokenLimits.folders,
  records: tokenLimits.records,
})
export type NewTrust = z.infer<typeof NewTrust>

export interface Trust extends NewTrust {
  id: string
  /** RFC 3339. */
  created_at: string
}

const table = name('trusts')

/** Trusts in workloads of external issuers. Each look-up reads the database, so a removal takes effect at once. */
export class Trusts {
  readonly #database: Sql

  constructor(database: Sql) {
    this.#database = database
  }

  /** @throws {HttpError} 409 for a name that is taken. */
  async add(trust: NewTrust, now: number): Promise<Trust> {
    const added = { id: randomUUID(), ...trust, created_at: new Date(now).toISOString() }
    try {
      await this.#database.run(
        sql`insert into ${table} (id, name, issuer, definition, created_at)
          values (${added.id}, ${added.name}, ${added.issuer}, ${JSON.stringify(added)}, ${now})`,
      )
    } catch (error) {
      throw isUniqueViolation(error) ? trustExists(trust.name) : error
    }
    return added
  }

  /** Oldest first. */
  async list(): Promise<Trust[]> {
    const rows = await this.#database.all<{ definition: string }>(
      sql`select definition from ${table} order by created_at, id`,
    )
    return rows.map(trustOf)
  }

  /** Removes a trust, if `isAllowed`: its tokens end at once. @throws {HttpError} 404 */
  async remove(id: string, isAllowed: (trust: Trust) => boolean = () => true): Promise<void> {
    const trust = await this.#find(id)
    if (!trust || !isAllowed(trust)) throw trustNotFound(id)
    await this.#database.run(sql`delete from ${table} where id = ${id}`)
  }

  /** A workload as a caller. Undefined: its trust was removed. */
  async findCaller(id: string, subject: string): Promise<Caller | undefined> {
    const trust = await this.#find(id)
    return (
      trust && {
        id: `trust:${id} ${subject}`,
        username: trustPrefix + trust.name,
        ...rightsOfGrant(trust),
        token: { id, name: subject },
      }
    )
  }

  async #find(id: string): Promise<Trust | undefined> {
    const row = await this.#database.get<{ definition: string }>(
      sql`select definition from ${table} where id = ${id}`,
    )
    return row && trustOf(row)
  }
}

const trustOf = ({ definition }: { definition: string }): Trust => JSON.parse(definition)

export const trustNotFound = (id: string) => new HttpError(404, 'trust_not_found', `No trust ${id}`)

export const trustExists = (taken: string) =>
  new HttpError(409, 'trust_exists', `There is a trust named ${taken}: choose another name`)
