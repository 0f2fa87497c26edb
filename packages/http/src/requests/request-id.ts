import { randomUUID } from 'node:crypto'

/** The id that a caller sent, if a log line can hold it unharmed (printable ASCII); else a new one. */
export const readRequestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[\x20-\x7e]{1,128}$/.test(sent) ? sent : randomUUID()
