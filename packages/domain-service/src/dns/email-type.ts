import type { Row } from './record.ts'

export const emailTypes = ['NONE', 'MX', 'MXE', 'FWD', 'OX', 'GMAIL'] as const

/**
 * The email type that a changed zone must be sent with. The registrar replaces it with each write like the records,
 * and stores MX rows only beside a type that wants them. What was read is kept, except: a caller may ask for
 * another; a first MX (MXE) in a zone of type NONE makes it MX (MXE); removing the last one makes it NONE. A first MX
 * in a FWD zone would end its e-mail forwarding, so it must be asked for; OX and GMAIL are never left implicitly.
 */
export function resolveEmailType(change: {
  asked: string | undefined
  before: { emailType: string | undefined; rows: Row[] }
  rows: Row[]
}): { emailType: string } | { conflict: string } | { fault: string } {
  const { asked, before, rows } = change
  const wants = wantedBy(rows)
  if (wants === 'both')
    return { fault: 'MX and MXE records cannot stand in one zone: keep one kind' }
  // Said back as it was read it is right, but not for a first MX (MXE): the registrar would drop that without a word.
  const isFirst = wants !== undefined && wantedBy(before.rows) !== wants
  if (asked !== undefined && asked === before.emailType && !isFirst) return { emailType: asked }
  if (asked !== undefined) return judgeAsked(asked, wants)

  const current = before.emailType || (wants ?? 'NONE')
  const mails = current === 'MX' || current === 'MXE'
  if (current === 'NONE' || (mails && (wants || wantedBy(before.rows))))
    return { emailType: wants ?? 'NONE' }
  if (mails || !wants) return { emailType: current }
  // MX rows of the provider's own belong to OX and GMAIL zones.
  if (wants === 'MX' && (current === 'OX' || current === 'GMAIL')) return { emailType: current }
  if (!isFirst) return { emailType: current }
  return {
    conflict: `The zone's email type is ${current}, and a first ${wants} record would end that: send "email_type": "${wants}" if you mean it`,
  }
}

function judgeAsked(asked: string, wants: 'MX' | 'MXE' | undefined) {
  if (wants === 'MXE' && asked !== 'MXE')
    return { fault: `must be MXE while the zone has an MXE record` }
  if (wants === 'MX' && !['MX', 'OX', 'GMAIL'].includes(asked)) {
    return { fault: `must be MX (or OX or GMAIL) while the zone has MX records` }
  }
  if (asked === 'MX' && wants !== 'MX') return { fault: 'needs an MX record in the zone' }
  if (asked === 'MXE' && wants !== 'MXE') return { fault: 'needs an MXE record in the zone' }
  return { emailType: asked }
}

function wantedBy(rows: Row[]): 'MX' | 'MXE' | 'both' | undefined {
  const mx = rows.some((row) => row.type === 'MX')
  const mxe = rows.some((row) => row.type === 'MXE')
  if (mx && mxe) return 'both'
  return mx ? 'MX' : mxe ? 'MXE' : undefined
}
