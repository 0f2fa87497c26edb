import { randomUUID } from 'node:crypto'

/** The client's request id if it is 1–128 printable ASCII characters, else a new one. */
export const readRequestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[\x20-\x7e]{1,128}$/.test(sent) ? sent : randomUUID()
