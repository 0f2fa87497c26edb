import { HttpError } from '@domains-and-files/http'
import { type Caller, isRoleEnough } from '../authorization.ts'
import { describeRecordLimits, namesRrset, type RecordLimit } from './record-limits.ts'

/** A set of records with one name, relative to its domain (`@` for the domain itself), and one type. */
export interface Rrset {
  name: string
  type: string
}

/** Whether the caller may write this RRset of a domain that it may see. */
export const mayWriteRrset = ({ role, token }: Caller, name: string, type: string) =>
  isRoleEnough(role, 'editor') && (!token?.records || namesRrset(token.records, name, type))

/** Whether the caller may read this RRset of a domain that it may see. */
export const mayReadRrset = ({ token }: Caller, name: string, type: string) =>
  !token?.records || token.readsAll || namesRrset(token.records, name, type)

/** @throws {HttpError} 403 naming what the token may write, if it may not write all of these. */
export function requireRrsetWrites(caller: Caller, rrsets: Iterable<Rrset>) {
  for (const { name, type } of rrsets)
    if (!mayWriteRrset(caller, name, type)) throw outsideRecords(caller, `${name} ${type}`)
}

/** @throws {HttpError} 403 naming what the token may do, if it may not read this RRset. */
export function requireRrsetRead(caller: Caller, { name, type }: Rrset) {
  if (!mayReadRrset(caller, name, type)) throw outsideRecords(caller, `${name} ${type}`)
}

/** As `requireRrsetWrites`, for a change whose caller is gone: by the limits of its token. @throws {HttpError} 403 */
export function requireWithinRecords(records: readonly RecordLimit[], rrsets: Iterable<Rrset>) {
  for (const { name, type } of rrsets) {
    if (namesRrset(records, name, type)) continue
    const may = `This token may write only ${describeRecordLimits(records)}`
    throw new HttpError(403, 'forbidden', `${may}, not ${name} ${type}`)
  }
}

/** 403 for a caller whose token does not cover `what`. */
export function outsideRecords({ token }: Caller, what: string) {
  const may = token?.records
    ? `This token may ${token.readsAll ? 'write' : 'read and write'} only ${describeRecordLimits(token.records)}`
    : 'This needs the role editor'
  return new HttpError(403, 'forbidden', `${may}, not ${what}`)
}
