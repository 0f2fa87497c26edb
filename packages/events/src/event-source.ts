import type { Rights } from '@domains-and-files/auth'
import { z } from 'zod'
import { type StoredEvent, timeOfId } from './outbox.ts'

/** Who reads events: a caller or a webhook. */
export type Reader = Rights & { username?: string }

/** The events of a service: types, and how to describe them for a reader. */
export interface EventSource {
  types: readonly [string, ...string[]]
  /** The kind of limit that webhooks can have. */
  scope: 'domains' | 'folders'
  /** The API's `data` of an event for a reader. Undefined: hidden from this reader. */
  describe: (event: StoredEvent, reader: Reader) => object | undefined
  /** An event of this type, with the API's object. */
  example: { type: string; data: Pick<Event, 'at' | 'by' | 'request_id'> }
}

export const exampleId = '01KEZ5H3C0000ABCDEFGHJKMNP'
export const EventId = z.string().meta({ examples: [exampleId] })

export const Event = z
  .object({
    id: EventId.meta({ description: 'sorts by time; the same in every delivery' }),
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

/** An event as the API shows it to a reader. Undefined: hidden from this reader. */
export function toEvent(event: StoredEvent, { describe }: EventSource, reader: Reader) {
  const data = describe(event, reader)
  const { id, type, by, requestId: request_id } = event
  const at = new Date(timeOfId(id)).toISOString()
  return data && { id, type, at, by, request_id, data: { ...data } }
}
