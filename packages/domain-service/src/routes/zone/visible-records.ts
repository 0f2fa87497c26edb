import { mayReadRrset, type Rights } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import type { Warning } from '../../ledger/ledger.ts'

// What a token that is limited to some records may learn of the others: nothing.

/** Whether this caller may not read all records of a zone. */
export const isRecordLimited = ({ records, readsAll }: Rights) => records !== undefined && !readsAll

/** The records that the caller may read. */
export const visibleRecords = <Named extends { name: string; type: string }>(
  records: Named[],
  caller: Rights,
): Named[] =>
  isRecordLimited(caller)
    ? records.filter(({ name, type }) => mayReadRrset(caller, name, type))
    : records

/** The texts of warnings, without those about records that the caller may not read. */
export const visibleWarnings = (warnings: Warning[], caller: Rights): string[] =>
  warnings.flatMap((warning) => {
    if (typeof warning === 'string') return warning
    const [visible] = visibleRecords([warning.rrset], caller)
    return visible ? warning.text : []
  })

/** The detail of a problem for this caller: some codes name records of the zone. */
export const visibleDetail = (code: string, detail: string, caller: Rights): string =>
  (isRecordLimited(caller) ? discreet.get(code) : undefined) ?? detail

const discreet = new Map([
  ['record_exists', 'This record is there already'],
  ['record_conflict', 'The record cannot be beside another one of the zone'],
  [
    'unsupported_records',
    'The zone has records that the registrar cannot be sent, so that this write would delete them: ask its owner',
  ],
  ['write_not_confirmed', 'The change was sent, but the zone is not known to be as it was sent'],
])

/** An error as this caller may see it. */
export function visibleError(error: unknown, caller: Rights): unknown {
  if (!(error instanceof HttpError)) return error
  const { status, code, message, errors, headers } = error
  const detail = visibleDetail(code, message, caller)
  if (detail === message) return error
  return new HttpError(status, code, detail, { headers, cause: error, ...(errors && { errors }) })
}
