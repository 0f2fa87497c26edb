import { forbidden } from '@domains-and-files/http'
import type { FastifyContextConfig } from 'fastify'
import { z } from 'zod'
import * as errors from './errors.ts'
import {
  coversDomain,
  coversPath,
  describeRecordLimits,
  findOutside,
  intersect,
  type Limits,
  listLimits,
  namesRrset,
  type RecordLimit,
  type Rrset,
} from './limits.ts'

// All authorisation decisions. A caller has rights, however it authenticated. A route declares the rights that it needs;
// its handler passes the domain, path or RRset of the request.

export const Role = z.enum(['viewer', 'editor', 'admin'])
export type Role = z.infer<typeof Role>

/** The limits without absent ones. */
export const limitsOf = (limits: { [Limit in keyof Limits]: Limits[Limit] | null }) => ({
  ...(limits.domains && { domains: limits.domains }),
  ...(limits.folders && { folders: limits.folders }),
  ...(limits.writes && { writes: limits.writes }),
})

/** What a caller may do. An absent limit does not limit. */
export interface Rights extends ReturnType<typeof limitsOf> {
  role: Role
  /** The only RRsets that it may write, and read unless `readsAll`. */
  records?: RecordLimit[]
  /** Whether RRsets outside `records` may be read. */
  readsAll?: boolean
}

/** An authenticated caller, with the rights that its user and its API token have now. */
export interface Caller extends Rights {
  /**
   * Identifies the caller in stored data: `token:` and its API token, `trust:` and its trust, else `user:`. A later user
   * of the same name has another id, unless users.json was written by hand without ids.
   */
  id: string
  username: string
  /** Absent: never. */
  expiresAt?: Date
  /** The id of its session, if it logged in. */
  session?: string
  /** Set if an API token was used. `owner`: the `id` of its user. */
  token?: { id: string; name: string; owner: string; mayReplace?: boolean }
}

export const hasExpired = ({ expiresAt }: Caller, now: number) => expiresAt !== undefined && expiresAt.getTime() <= now

interface Account extends Limits {
  username: string
  role: Role
  /** Distinguishes a user from an earlier one of that name. */
  id?: string | undefined
}

export const callerOfUser = (user: Account): Caller => ({
  id: `user:${[user.username, user.id ?? []].flat().join(' ')}`,
  username: user.username,
  role: user.role,
  ...limitsOf(user),
})

/**
 * The rights that an API token or a trust grants. `records` permit writes of the RRsets they name, so they imply the role
 * editor.
 */
export function rightsOfGrant({ role, records, ...limits }: Grant): Rights {
  const editor = role === 'admin' ? 'admin' : 'editor'
  return {
    role: records ? editor : (role ?? 'viewer'),
    ...limitsOf(limits),
    ...(records && { records, readsAll: role !== undefined }),
  }
}

interface Grant extends Limits {
  role?: Role | undefined
  records?: RecordLimit[] | undefined
}

/** The intersection of both rights: a token never exceeds its owner. */
export function intersectRights(owner: Account, token: Rights): Rights {
  return {
    role: hasRole(owner, token.role) ? token.role : owner.role,
    ...limitsOf({
      domains: intersect('domains', owner.domains, token.domains),
      folders: intersect('folders', owner.folders, token.folders),
      writes: owner.writes ?? token.writes,
    }),
    ...(token.records && { records: token.records, readsAll: token.readsAll ?? false }),
  }
}

export const hasRole = ({ role }: Pick<Rights, 'role'>, needed: Role) =>
  Role.options.indexOf(role) >= Role.options.indexOf(needed)

/**
 * Routes whose handler does not check `records` reject callers with `records`, except for reading with `readsAll`.
 * @throws {HttpError} 403 if the role or the record limits of a caller do not permit this.
 */
export function requireRights(
  rights: Rights,
  { access, enforcesRecordLimits, needsNoLimits }: FastifyContextConfig & { access: Role },
  { method, url }: { method: string; url: string },
): void {
  if (!hasRole(rights, access)) throw errors.roleRequired(access)
  if (needsNoLimits && isLimited(rights)) throw errors.limitsTooNarrow()
  const readsAll = rights.readsAll && ['GET', 'HEAD'].includes(method)
  if (rights.records && !enforcesRecordLimits && !readsAll)
    throw outsideRecords(rights, `${method} ${url.replace(/\?.*/s, '')}`)
}

/** Whether a caller may manage API tokens of this owner: its own, and as admin without limits everybody's. */
export const mayManageTokens = (caller: Caller, owner: string) =>
  caller.username === owner || (hasRole(caller, 'admin') && !isLimited(caller))

export const isLimited = ({ domains, folders, writes }: Limits) => Boolean(domains || folders || writes)

/** Why a caller may not grant these rights. */
export function findExcess(caller: Rights, wanted: Grant): string | undefined {
  if (wanted.role && !hasRole(caller, wanted.role)) return `You may grant at most your own role, ${caller.role}`
  if (caller.writes && !wanted.writes) return 'You may only propose changes, so you may grant no more'
  for (const limit of listLimits) {
    if (caller[limit] && !wanted[limit]) return `You are limited to some ${limit}, so you may grant no others`
    const outside = findOutside(limit, caller[limit], wanted[limit])
    if (outside !== undefined) return `${outside} is not among your own ${limit}`
  }
  return undefined
}

/** @throws {HttpError} 403 with this reason; nothing if undefined. */
export function refuse(excess: string | undefined): void {
  if (excess !== undefined) throw forbidden(excess)
}

/** Whether a caller may see this domain: listed, or below a listed `*.` pattern; without a list, always. */
export const allowsDomain = ({ domains }: Pick<Limits, 'domains'>, domain: string): boolean =>
  !domains || coversDomain(domains, domain)

/** Whether a caller may see a path, or a folder that ends in a slash; without a list, always. */
export const allowsPath = ({ folders }: Pick<Limits, 'folders'>, path: string): boolean =>
  !folders || coversPath(folders, path)

/** Whether the caller may write this RRset of a domain that it may see, without another person's approval. */
export const mayWriteRrset = (rights: Rights, name: string, type: string) =>
  hasRole(rights, 'editor') && !rights.writes && (!rights.records || namesRrset(rights.records, name, type))

export const mayReadRrset = ({ records, readsAll }: Rights, name: string, type: string) =>
  !records || readsAll === true || namesRrset(records, name, type)

/** @throws {HttpError} 403 naming what the caller may write, if it may not write all of these. */
export function requireRrsetWrites(rights: Rights, rrsets: Iterable<Rrset>) {
  for (const { name, type } of rrsets)
    if (!mayWriteRrset(rights, name, type)) throw outsideRecords(rights, `${name} ${type}`)
}

/** @throws {HttpError} 403 naming what the caller may do, if it may not read this RRset. */
export function requireRrsetRead(rights: Rights, { name, type }: Rrset) {
  if (!mayReadRrset(rights, name, type)) throw outsideRecords(rights, `${name} ${type}`)
}

/** As `requireRrsetWrites`, for a stored change: checks the limits of the token that made it. @throws {HttpError} 403 */
export const requireWithinRecords = (records: RecordLimit[], rrsets: Iterable<Rrset>) =>
  requireRrsetWrites({ role: 'editor', records, readsAll: true }, rrsets)

/** 403 for a caller whose rights do not cover `what`. */
function outsideRecords({ records, readsAll, writes }: Rights, what: string) {
  if (writes) return onlyProposes()
  if (!records) return errors.roleRequired('editor')
  const may = readsAll ? 'write' : 'read and write'
  return forbidden(`This token may ${may} only ${describeRecordLimits(records)}, not ${what}`)
}

/** 403 for a caller whose writes need approval, on routes that cannot wait for one. */
export const onlyProposes = () => forbidden('You may only propose changes: send them to /api/domains')
