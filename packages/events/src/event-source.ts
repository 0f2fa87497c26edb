import type { Rights } from '@domains-and-files/auth'
import { z } from 'zod'
import { timeOfId } from './event-id.ts'
import type { StoredEvent } from './outbox.ts'

/** The events of a service: types, and how to describe them for a reader. */
export interface EventSource {
  types: readonly [string, ...string[]]
  /** The kind of limit that webhooks can have. */
  scope: 'domains' | 'folders'
  /** The API's `data` of an event for a reader (a caller or webhook). Undefined: hidden from this reader. */
  describe: (event: StoredEvent, reader: Rights & { username?: string }) => object | undefined
  /** An event of this type, with the API's object. */
  example: { type: string; data: Pick<Event, 'at' | 'by' | 'request_id'> }
}

export const Event = z
  .object({
    id: z.string().meta({ description: 'sorts by time; the same in every delivery' }),
    type: z.string(),
    at: z.iso.datetime(),
    by: z.string().nullable().meta({ description: 'a username; null: nobody here' }),
    request_id: z.string().nullable(),
    data: z
      .record(z.string(), z.unknown())
      .meta({ description: "what the event is about, as the API's own object" }),
  })
  .meta({ id: 'Event' })
export type Event = z.infer<typeof Event>

/** An event as the API shows it. */
export const toEvent = ({ id, type, by, requestId }: StoredEvent, data: object): Event => ({
  id,
  type,
  at: new Date(timeOfId(id)).toISOString(),
  by,
  request_id: requestId,
  data: { ...data },
})
