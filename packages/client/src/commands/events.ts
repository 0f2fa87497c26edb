import { ProblemError } from '../problem-error.ts'
import { wait } from '../retrying-fetch.ts'
import { unwrap } from '../unwrap.ts'

export interface EventFlags {
  follow: boolean
  types?: string
  after?: string
}

/** GET /api/events of a service. */
type GetEvents = (options: {
  params: { query: { after?: string; types?: string; limit?: number } }
  headers?: { accept: 'text/event-stream' }
  parseAs?: 'stream'
  signal?: AbortSignal
}) => Promise<{ data?: unknown; error?: unknown; response: Response }>

interface Page {
  events: object[]
  next: string
}

/**
 * Prints events, one JSON object a line: those that are kept, or with `follow` those to come, and none twice or not at all
 * where the connection breaks.
 */
export async function printEvents(get: GetEvents, { follow, types, after }: EventFlags) {
  const filter = types === undefined ? {} : { types }
  const read = async (position: string | undefined, limit: number) => {
    const query = { ...filter, ...(position === undefined ? {} : { after: position }), limit }
    return (await unwrap(get({ params: { query } }))) as Page // As the OpenAPI document says.
  }
  if (!follow) {
    for (
      let page = await read(after, 200);
      page.events.length > 0;
      page = await read(page.next, 200)
    )
      for (const event of page.events) process.stdout.write(`${JSON.stringify(event)}\n`)
    return
  }
  const { next } = await read(after ?? 'latest', 1)
  let [position, pauseMs] = [after ?? next, firstPauseMs]
  for (;;) {
    try {
      for await (const block of openStream(get, { ...filter, after: position })) {
        const { id, data } = fieldsOf(block)
        if (data !== undefined) process.stdout.write(`${data}\n`)
        position = id ?? position
        pauseMs = firstPauseMs
      }
    } catch (error) {
      if (!isPassing(error)) throw error
    }
    await wait(pauseMs)
    pauseMs = Math.min(2 * pauseMs, longestPauseMs)
  }
}

const firstPauseMs = 1_000
const longestPauseMs = 30_000
/** The service sends something every 15 seconds. */
const silenceMs = 60_000

/** The blocks of a stream of server-sent events (HTML, 9.2). */
async function* openStream(get: GetEvents, query: { after: string; types?: string }) {
  const abort = new AbortController()
  const silence = setTimeout(() => abort.abort(), silenceMs)
  const headers = { accept: 'text/event-stream' } as const
  const { signal } = abort
  try {
    const body = await unwrap(get({ params: { query }, headers, parseAs: 'stream', signal }))
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of body as ReadableStream<Uint8Array>) {
      silence.refresh()
      const blocks = (text + decoder.decode(chunk, { stream: true })).split('\n\n')
      text = blocks.pop() ?? ''
      yield* blocks
    }
  } finally {
    clearTimeout(silence)
    abort.abort()
  }
}

const fieldsOf = (block: string): { id?: string; data?: string } =>
  Object.fromEntries([...block.matchAll(/^(\w+): (.*)$/gm)].map(([, name, value]) => [name, value]))

const isPassing = (error: unknown) =>
  error instanceof ProblemError
    ? error.status >= 500 || error.status === 429
    : error instanceof Error && ['TypeError', 'AbortError'].includes(error.name)
