import { randomUUID } from 'node:crypto'
import { type App, answers, listPage, listSchema, operations, pageQuery } from '@domains-and-files/http'
import { name, type Sql, sql } from '@domains-and-files/persistence'
import { z } from 'zod'
import { tokenLimits } from '../api-tokens/api-tokens.ts'
import { requireOwnLimits, type ServiceName } from '../api-tokens/token-format.ts'
import * as errors from '../errors.ts'
import { type Caller, Role, rightsOfGrant } from '../rights.ts'
import { IssuerUrl } from '../settings.ts'
import { trustPrefix, Username } from '../users/user.ts'

// Trusts in workloads of external issuers. Each look-up reads the database, so a removal takes effect at once.

/** Claims that identify a workload. Others, such as a branch, can be equal in tokens of unrelated workloads. */
const workloadClaims = [
  ...['sub', 'repository', 'repository_id', 'repository_owner', 'repository_owner_id'],
  ...['job_workflow_ref', 'workflow_ref', 'project_path', 'project_id'],
  ...['namespace_path', 'namespace_id', 'user_id', 'user_login', 'user_email'],
]

const claimText = z.string().min(1).max(500)

/** A new trust: which workloads may exchange tokens of its issuer, and the rights that they get. */
export const NewTrust = z
  .strictObject({
    name: Username.meta({ examples: ['deploy-site'] }),
    issuer: IssuerUrl.meta({
      description: 'of the tokens: `iss`',
      examples: ['https://token.actions.githubusercontent.com'],
    }),
    audience: claimText.meta({
      description: 'that the tokens must be for: in `aud`',
      examples: ['https://files.example.com'],
    }),
    claims: z
      .record(z.string().min(1).max(100), claimText)
      .refine(
        (claims) => workloadClaims.some((claim) => Object.hasOwn(claims, claim)),
        'must have a claim that names one workload, such as sub, repository or project_path: anybody can get a token for any audience',
      )
      .meta({
        description: 'that the tokens must have, all of them, exactly',
        examples: [{ repository: 'acme/site', ref: 'refs/heads/main' }],
      }),
    role: Role,
    domains: tokenLimits.domains,
    folders: tokenLimits.folders,
    records: tokenLimits.records,
  })
  .meta({ id: 'NewTrust' })
export type NewTrust = z.infer<typeof NewTrust>

export interface Trust extends NewTrust {
  id: string
  /** RFC 3339. */
  created_at: string
}

const table = name('trusts')

/** @throws {HttpError} 409 for a name that is taken. */
export async function addTrust(database: Sql, trust: NewTrust, now: number): Promise<Trust> {
  const added = { id: randomUUID(), ...trust, created_at: new Date(now).toISOString() }
  const inserted = await database.run(
    sql`insert into ${table} (id, name, issuer, definition, created_at)
      values (${added.id}, ${added.name}, ${added.issuer}, ${JSON.stringify(added)}, ${now})
      on conflict (name) do nothing`,
  )
  if (inserted === 0) throw errors.trustExists(trust.name)
  return added
}

/** Oldest first. */
export async function listTrusts(database: Sql): Promise<Trust[]> {
  const rows = await database.all<{ definition: string }>(sql`select definition from ${table} order by created_at, id`)
  return rows.map(({ definition }) => JSON.parse(definition))
}

/** Removes a trust by its id or name: its tokens end at once. @returns how many were removed. */
export const removeTrust = (database: Sql, wanted: string) =>
  database.run(sql`delete from ${table} where id = ${wanted} or name = ${wanted}`)

/** A workload as a caller. Undefined: its trust was removed. */
export async function findWorkload(database: Sql, id: string, subject: string): Promise<Caller | undefined> {
  const row = await database.get<{ definition: string }>(sql`select definition from ${table} where id = ${id}`)
  const trust: Trust | undefined = row && JSON.parse(row.definition)
  return (
    trust && {
      id: `trust:${id} ${subject}`,
      username: trustPrefix + trust.name,
      ...rightsOfGrant(trust),
      token: { id, name: subject, owner: `trust:${id}` },
    }
  )
}

const exampleId = '5b1c8a52-0c1e-4f77-9a55-3f8e2b6d9c11'

const TrustRecord = z
  .object({
    id: z.string().meta({ examples: [exampleId] }),
    ...NewTrust.shape,
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Trust' })

const routes = operations({
  shared: { access: 'admin', needsLogin: true, needsNoLimits: true },
  listTrusts: {
    needsLogin: false,
    summary: 'List trusts',
    description:
      'Which workloads may log in without secrets, with which rights; oldest first. For admins without limits.',
    querystring: z.strictObject(pageQuery(50, 200)),
    ...answers(200, 'The trusts', listSchema('TrustList', 'trusts', TrustRecord)),
  },
  addTrust: {
    summary: 'Trust a workload',
    description:
      'A workload with a token of this issuer, for this audience, with all these claims, gets a token of this service at `POST /api/auth/token`.',
    body: NewTrust,
    errors: [errors.trustExists('deploy-site')],
    ...answers(201, 'The trust', TrustRecord),
  },
  removeTrust: {
    summary: 'Remove a trust',
    description: 'Its tokens end at once.',
    params: z.strictObject({ id: TrustRecord.shape.id.describe('its `id`, or its name') }),
    errors: [errors.trustNotFound(exampleId)],
    ...answers(204, 'Removed'),
  },
})

export function registerTrustRoutes(
  app: App,
  { database, now, audience }: { database: Sql; now: () => number; audience: ServiceName },
) {
  app.get('/api/trusts', routes.listTrusts, async ({ query }) =>
    listPage('trusts', await listTrusts(database), query, (trust) => trust),
  )
  // Bytes: holds 100 domains and names of records.
  app.post('/api/trusts', { ...routes.addTrust, bodyLimit: 131_072 }, async (request) => {
    requireOwnLimits(audience, request.body)
    const trust = await addTrust(database, request.body, now())
    request.log.info({ trust: trust.name }, 'trust added')
    return trust
  })
  app.delete('/api/trusts/:id', routes.removeTrust, async (request) => {
    const { id } = request.params
    if ((await removeTrust(database, id)) === 0) throw errors.trustNotFound(id)
    request.log.info({ trust_id: id }, 'trust removed')
  })
}
