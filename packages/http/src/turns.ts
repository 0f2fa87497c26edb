import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'

interface Waiting {
  request: IncomingMessage
  response: ServerResponse
  since: number
}

/**
 * Puts a queue before the server's handler. In each turn the event loop reads what has come on all connections and
 * accepts a single new one: were a thousand requests served in one turn, every other caller would wait for them before
 * the door. So a turn serves for some milliseconds, what is left waits in order, and when the first of the queue has
 * waited too long, `refuse` has to answer those that come. Those that `isUrgent` says neither wait nor are refused.
 */
export function serveInTurns(
  server: Server,
  { turn, longestWait }: { turn: number; longestWait: number },
  { isUrgent, refuse }: { isUrgent: (url: string) => boolean; refuse: RequestListener },
) {
  const [serve] = server.listeners('request') as RequestListener[] // The framework's, the only one yet.
  if (!serve) throw new Error('there is nothing to serve with')
  server.off('request', serve)

  let waiting: Waiting[] = []
  let head = 0
  let isTurnOpen = false
  let hasAccepted = false
  let turnEnds = 0
  let readsSince = 0

  const beginTurn = (length: number) => {
    isTurnOpen = true
    readsSince = performance.now()
    turnEnds = readsSince + length
    setImmediate(endTurn)
  }
  const endTurn = () => {
    isTurnOpen = false
    // Who knocks waits for the turns of all before. While nobody does, half of the time is for those that are served,
    // however long reading and refusing takes.
    const length = hasAccepted ? turn / 5 : Math.max(turn, performance.now() - readsSince)
    hasAccepted = false
    if (head < waiting.length) void serveWaiting(length)
  }
  const serveWaiting = async (length: number) => {
    beginTurn(length)
    while (head < waiting.length && performance.now() < turnEnds) {
      const { request, response } = waiting[head++] as Waiting // There is one, by the bound of the loop.
      if (response.destroyed) continue
      serve(request, response)
      // What it goes on with, before the clock is looked at again.
      await undefined
    }
    readsSince = performance.now()
    if (head < 1000 && head < waiting.length) return
    waiting = waiting.slice(head)
    head = 0
  }

  server.on('connection', () => {
    hasAccepted = true
  })
  server.on('request', (request, response) => {
    if (isUrgent(request.url ?? '')) return serve(request, response)
    if (!isTurnOpen) beginTurn(turn)
    const now = performance.now()
    const first = waiting[head]
    if (!first && now < turnEnds) return serve(request, response)
    if (first && now - first.since > longestWait) return refuse(request, response)
    waiting.push({ request, response, since: now })
  })
}
