import { unwrap } from '../responses.ts'
import { mayPass } from '../resumable-upload.ts'
import { wait } from '../session.ts'

export const eventOptions = {
  follow: { type: 'boolean', default: false },
  types: { type: 'string' },
  after: { type: 'string' },
} as const

type GetEvents = (options: {
  params: { query: { after?: string; types?: string } }
}) => Promise<{ data?: { events: object[]; next: string }; error?: unknown; response: Response }>

const pauseMs = 2_000

/**
 * Prints events, one JSON object a line: the stored ones, or with `follow` future ones. Lost connections neither skip nor
 * repeat an event.
 */
export async function printEvents(
  get: GetEvents,
  { follow, types, after }: { follow: boolean; types?: string; after?: string },
) {
  const read = (position?: string) => {
    const query = { ...(types && { types }), ...(position && { after: position }) }
    return unwrap(get({ params: { query } }))
  }
  for (let page = await read(after ?? (follow ? 'latest' : undefined)); ; ) {
    const { events, next } = page
    for (const event of events) process.stdout.write(`${JSON.stringify(event)}\n`)
    if (events.length === 0) {
      if (!follow) return
      await wait(pauseMs)
    }
    page = await read(next).catch((error) => {
      if (!follow || !mayPass(error)) throw error
      return { events: [], next }
    })
  }
}
