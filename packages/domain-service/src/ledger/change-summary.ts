import type { HostRecord } from '../dns/record.ts'
import type { ChangeSummary } from './ledger.ts'

/** Characters of JSON that each of `added` and `removed` may have in a summary. */
const maxLength = 4_096

/** Bounds what one change contributes to a list: whole records up to 4 KiB a side; the others are only counted. */
export function summarize(added: HostRecord[], removed: HostRecord[], kept: number): ChangeSummary {
  const shown = { added: fitting(added), removed: fitting(removed) }
  const omitted = {
    added: added.length - shown.added.length,
    removed: removed.length - shown.removed.length,
  }
  const isWhole = omitted.added === 0 && omitted.removed === 0
  return { ...shown, kept, ...(isWhole ? {} : { omitted }) }
}

function fitting(records: HostRecord[]): HostRecord[] {
  let length = 0
  const end = records.findIndex((record) => {
    length += JSON.stringify(record).length
    return length > maxLength
  })
  return end === -1 ? records : records.slice(0, end)
}
