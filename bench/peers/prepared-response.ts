/** The response of the only route of a limit; its headers are those of ours. */
export interface PreparedResponse {
  path: string
  status: number
  headers: Record<string, string>
  body: { base64: string } | { json: unknown } | undefined
  /** Whether the route requires a token, which `/token` gives out. */
  isGuarded: boolean
}
