import type { RequestListener, Server } from 'node:http'

interface TurnLimits {
  turn: number
  longestWait: number
  mostWaiting: number
}

/**
 * Puts a queue before the server's handler. In each turn of the event loop Node reads what has come on all connections,
 * and accepts a single new one: were a thousand requests served in one turn, every other caller would wait for them
 * before the door. So a turn serves for `turn` milliseconds, and for a small part of it while callers knock. What is left
 * waits in order; what has waited longer than `longestWait` milliseconds is refused instead, in its turn, and at once what
 * comes while `mostWaiting` wait. Those that `isUrgent` says neither wait nor are refused.
 */
export function limitIterationWork(
  server: Server,
  { turn, longestWait, mostWaiting }: TurnLimits,
  { isUrgent, refuse }: { isUrgent: (url: string) => boolean; refuse: RequestListener },
) {
  const [serve] = server.listeners('request') as RequestListener[] // The framework's, the only one yet.
  if (!serve) throw new Error('there is nothing to serve with')
  server.off('request', serve)

  let waiting: { exchange: Parameters<RequestListener>; since: number }[] = []
  let head = 0
  let served = 0
  let isTurnOpen = false
  let hasAccepted = false
  let turnEnds = 0

  const isEmpty = () => head === waiting.length
  const beginTurn = (now: number) => {
    isTurnOpen = true
    turnEnds = now + (hasAccepted ? turn / 32 : turn)
    hasAccepted = false
    setImmediate(endTurn)
  }
  const endTurn = () => {
    isTurnOpen = false
    served = 0
    if (isEmpty()) return
    beginTurn(performance.now())
    serveNext()
  }
  const serveNext = () => {
    const next = waiting[head]
    if (!next) return
    head += 1
    if (head === 1000) {
      waiting = waiting.slice(head)
      head = 0
    }
    const now = performance.now()
    const [, response] = next.exchange
    if (now - next.since > longestWait) refuse(...next.exchange)
    else if (!response.destroyed) serve(...next.exchange)
    // One at least in each turn. What it goes on with comes before the next: promises, then callbacks.
    if (now < turnEnds) queueMicrotask(() => process.nextTick(serveNext))
  }

  server.on('connection', () => {
    hasAccepted = true
  })
  server.on('request', (request, response) => {
    // To ask where a turn ends costs a turn of its own: a few are served without, whether they came in one or in many.
    if (isEmpty() && served < atLeast) {
      served += 1
      return serve(request, response)
    }
    if (isUrgent(request.url ?? '')) return serve(request, response)
    const now = performance.now()
    if (!isTurnOpen) beginTurn(now)
    if (isEmpty() && now < turnEnds) return serve(request, response)
    // Node stops reading a connection when much is to be sent on it: unanswered requests it would read without end.
    if (waiting.length - head >= mostWaiting) return refuse(request, response)
    waiting.push({ exchange: [request, response], since: now })
  })
}

const atLeast = 16
