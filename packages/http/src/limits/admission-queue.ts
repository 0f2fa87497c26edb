import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'

export interface QueueLimits {
  /** Milliseconds per event-loop iteration in which requests are served; the rest wait for the next iteration. */
  sliceMs: number
  /** Milliseconds that a request may wait; after that it is refused when its turn comes. */
  maxQueueMs: number
  /** Requests that may wait; further ones are refused at once. */
  maxQueued: number
}

interface Handlers {
  serve: RequestListener
  refuse: RequestListener
  /** Whether a request neither waits nor is refused. */
  isExempt: (url: string) => boolean
}

interface QueuedRequest {
  request: IncomingMessage
  response: ServerResponse
  since: number
}

/**
 * Serves requests in slices, first come first served. Per event-loop iteration Node reads every ready connection but
 * accepts one (libuv PR 3696): if one iteration served a thousand requests, the next accept would wait for all of them.
 * After an accept the slice is 1/32, so that bursts of new connections are accepted quickly; at least one request is
 * served per iteration.
 */
export class AdmissionQueue {
  readonly #limits: QueueLimits
  readonly #handlers: Handlers
  /** Entries before `#head` have been served; their slots are empty. */
  #queue: (QueuedRequest | undefined)[] = []
  #head = 0
  #servedUntimed = 0
  #isSliceOpen = false
  #hasAccepted = false
  #sliceEnd = 0

  constructor(server: Server, limits: QueueLimits, handlers: Handlers) {
    this.#limits = limits
    this.#handlers = handlers
    server.on('connection', () => {
      this.#hasAccepted = true
    })
    server.on('request', (request, response) => this.#admit(request, response))
  }

  #admit(request: IncomingMessage, response: ServerResponse) {
    // Reading the clock and ending a slice cost as much as an iteration: the first few requests do without.
    if (this.#isEmpty && this.#servedUntimed < untimed) {
      this.#servedUntimed += 1
      return this.#handlers.serve(request, response)
    }
    if (this.#handlers.isExempt(request.url ?? '')) return this.#handlers.serve(request, response)
    const now = performance.now()
    if (!this.#isSliceOpen) this.#openSlice(now)
    if (this.#isEmpty && now < this.#sliceEnd) return this.#handlers.serve(request, response)
    // Bounded: Node reads pipelined requests of a connection without end while little waits to be sent on it.
    if (this.#queue.length - this.#head >= this.#limits.maxQueued) {
      return this.#handlers.refuse(request, response)
    }
    this.#queue.push({ request, response, since: now })
  }

  get #isEmpty(): boolean {
    return this.#head === this.#queue.length
  }

  #openSlice(now: number) {
    this.#isSliceOpen = true
    this.#sliceEnd = now + this.#limits.sliceMs / (this.#hasAccepted ? 32 : 1)
    this.#hasAccepted = false
    setImmediate(() => this.#endSlice())
  }

  #endSlice() {
    this.#isSliceOpen = false
    this.#servedUntimed = 0
    if (this.#isEmpty) return
    this.#openSlice(performance.now())
    this.#serveNext()
  }

  #serveNext() {
    const next = this.#queue[this.#head]
    if (!next) return
    this.#queue[this.#head] = undefined
    this.#head += 1
    if (this.#head === 1000) {
      this.#queue = this.#queue.slice(this.#head)
      this.#head = 0
    }
    const { request, response, since } = next
    const now = performance.now()
    if (now - since > this.#limits.maxQueueMs) this.#handlers.refuse(request, response)
    else if (!response.destroyed) this.#handlers.serve(request, response)
    // Promises and callbacks of this request run before the next one.
    if (now < this.#sliceEnd) queueMicrotask(() => process.nextTick(() => this.#serveNext()))
  }
}

const untimed = 16
