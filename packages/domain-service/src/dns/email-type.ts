import type { Row } from './record.ts'

export const emailTypes = ['NONE', 'MX', 'MXE', 'FWD', 'OX', 'GMAIL'] as const

/** `conflict`: the client must choose (409). `fault`: the email type contradicts the records (400). */
export type EmailTypeResolution = { emailType: string } | { conflict: string } | { fault: string }

/**
 * The email type to send with a changed zone. The registrar replaces it with every write, and stores MX rows only
 * beside a type that allows them. The present type is kept, except: the client may request another; a first MX (MXE)
 * in a NONE zone makes it MX (MXE); removing the last one makes it NONE. A first MX in a FWD zone would end e-mail
 * forwarding, so it must be requested; OX and GMAIL are never left implicitly. An unknown type (undefined) is never
 * guessed.
 */
export function resolveEmailType(change: {
  requested: string | undefined
  before: { emailType: string | undefined; rows: Row[] }
  rows: Row[]
}): EmailTypeResolution {
  const { requested, before, rows } = change
  const required = requiredBy(rows)
  const isFirst = required !== undefined && requiredBy(before.rows) !== required
  // The present type is accepted as it is, but not with a first MX (MXE): the registrar would drop that silently.
  if (requested !== undefined && requested === before.emailType && !isFirst)
    return { emailType: requested }
  if (requested !== undefined) return checkRequested(requested, required)

  const current = before.emailType
  if (current === undefined) {
    return {
      conflict: `The registrar does not tell the zone's email type, and a write would replace it: send "email_type" (one of ${emailTypes.join(', ')}), or in a zone file the comment "; domain-service email-type" with it`,
    }
  }
  const isMail = current === 'MX' || current === 'MXE'
  if (current === 'NONE' || (isMail && (required || requiredBy(before.rows))))
    return { emailType: required ?? 'NONE' }
  if (isMail || !required) return { emailType: current }
  // OX and GMAIL zones contain MX rows of their provider.
  if (required === 'MX' && (current === 'OX' || current === 'GMAIL')) return { emailType: current }
  if (!isFirst) return { emailType: current }
  return {
    conflict: `The zone's email type is ${current}, and a first ${required} record would end that: send "email_type": "${required}", or in a zone file "; domain-service email-type ${required}", if you mean it`,
  }
}

function checkRequested(requested: string, required: 'MX' | 'MXE' | undefined) {
  if (!emailTypes.some((known) => known === requested))
    return { fault: `must be one of ${emailTypes.join(', ')}` }
  if (required === 'MXE' && requested !== 'MXE')
    return { fault: 'must be MXE while the zone has an MXE record' }
  if (required === 'MX' && !['MX', 'OX', 'GMAIL'].includes(requested))
    return { fault: 'must be MX (or OX or GMAIL) while the zone has MX records' }
  if (requested === 'MX' && required !== 'MX') return { fault: 'needs an MX record in the zone' }
  if (requested === 'MXE' && required !== 'MXE') return { fault: 'needs an MXE record in the zone' }
  return { emailType: requested }
}

// A zone never has both: they are conflicting records.
function requiredBy(rows: Row[]): 'MX' | 'MXE' | undefined {
  if (rows.some((row) => row.type === 'MX')) return 'MX'
  return rows.some((row) => row.type === 'MXE') ? 'MXE' : undefined
}
