import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** The line between a browser and a service on this machine: it can stop after so many bytes, be cut and mended. */
export class Line implements AsyncDisposable {
  readonly #server: Server
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  #isCut = false
  #bytesLeft = Number.POSITIVE_INFINITY
  #stopped = Promise.withResolvers<void>()

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer((socket) => this.#accept(socket))
  }

  static async open(port: number, target: number): Promise<Line> {
    const line = new Line(target)
    line.#server.listen(port, '127.0.0.1')
    await once(line.#server, 'listening')
    return line
  }

  /** Lets so many more bytes through to the service; resolves when it has, and nothing passes any more. */
  stopAfter(bytes: number): Promise<void> {
    this.#bytesLeft = bytes
    this.#stopped = Promise.withResolvers()
    return this.#stopped.promise
  }

  /** Closes every connection, and refuses others until it is mended. */
  cut() {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  mend() {
    this.cut()
    this.#isCut = false
    this.#bytesLeft = Number.POSITIVE_INFINITY
  }

  #accept(socket: Socket) {
    if (this.#isCut) return void socket.destroy()
    const upstream = connect(this.#target, '127.0.0.1')
    for (const each of [socket, upstream]) {
      this.#sockets.add(each)
      each.on('error', () => {}) // The other end is closed with it.
    }
    const close = () => {
      socket.destroy()
      upstream.destroy()
      this.#sockets.delete(socket)
      this.#sockets.delete(upstream)
    }
    socket.on('close', close)
    upstream.on('close', close)
    upstream.pipe(socket)
    socket.on('data', (chunk: Buffer) => this.#pass(chunk, socket, upstream))
  }

  #pass(chunk: Buffer, from: Socket, to: Socket) {
    const passed = chunk.subarray(0, this.#bytesLeft)
    this.#bytesLeft -= passed.length
    const isFull = !to.write(passed)
    if (this.#bytesLeft === 0) {
      from.pause()
      this.#stopped.resolve()
    } else if (isFull) {
      from.pause()
      to.once('drain', () => from.resume())
    }
  }

  async [Symbol.asyncDispose]() {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
