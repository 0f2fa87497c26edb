/** How long the registrar may still carry out a send that was given up. */
export const lateMs = 600_000

/** How long the registrar may show the zone that a send replaced. */
export const recentMs = 60_000

/** A row of `sends`; zones are digests, times are milliseconds since 1970. */
export interface SendRow {
  id: number
  domain: string
  state: string
  base: string
  zone: string
  found: string | null
  started_at: number
}
