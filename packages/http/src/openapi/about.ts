/** What the OpenAPI document and `GET /` say about a service. */
export interface About {
  title: string
  version: string
  /** Markdown. */
  description: string
  /** The groups of operations, in the order in which they are shown. */
  tags?: { name: string; description: string }[]
}
