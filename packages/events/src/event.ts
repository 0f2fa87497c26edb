import { z } from 'zod'

// Apart from the outbox: the worker threads of a service append events, and have no use for zod.

export const exampleId = '01KEZ5H3C0000ABCDEFGHJKMNP'
export const EventId = z.string().meta({ examples: [exampleId] })

export type Event = z.infer<typeof Event>
export const Event = z
  .object({
    id: EventId.describe('sorts by time; the same in every delivery'),
    type: z.string(),
    at: z.iso.datetime(),
    by: z.string().nullable().describe('a username; null: nobody here'),
    request_id: z.string().nullable(),
    data: z.record(z.string(), z.unknown()).describe("what the event is about, as the API's own object"),
  })
  .meta({ id: 'Event' })
