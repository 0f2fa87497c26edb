import { once } from 'node:events'
import net from 'node:net'

/**
 * What happens to a statement: `lose` cuts the connection before it arrives, `hide` cuts it before its answer returns.
 */
export type StatementFault = 'lose' | 'hide'

interface Link {
  client: net.Socket
  server: net.Socket
  /** The answer of a hidden statement must not pass. */
  isHidden: boolean
}

/** A TCP proxy before a PostgreSQL server, which cuts and delays connections. */
export class PostgresProxy {
  readonly #target: URL
  readonly #listener: net.Server
  readonly #links = new Set<Link>()
  #isSilent = false
  #ignoresQueries = false
  #refuses = false
  /** Decides for each COMMIT. */
  onCommit: (() => StatementFault | undefined) | undefined
  /** Decides for each statement, by its SQL. */
  onStatement: ((sql: string) => StatementFault | undefined) | undefined

  private constructor(url: string) {
    this.#target = new URL(url)
    this.#listener = net.createServer((client) => this.#connect(client))
  }

  /** Opens a proxy on a free port of the loopback interface before the server of a connection URL. */
  static async open(url: string): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(url)
    proxy.#listener.listen(0, '127.0.0.1')
    await once(proxy.#listener, 'listening')
    return proxy
  }

  /** The connection URL through the proxy. */
  get url(): string {
    const address = this.#listener.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed')
    const url = new URL(this.#target)
    url.port = String(address.port)
    return url.href
  }

  /** Ends all connections. */
  cut(): void {
    for (const link of this.#links) this.#end(link)
  }

  /** Ends all connections, and new ones at once, until `resume`. */
  refuse(): void {
    this.#refuses = true
    this.cut()
  }

  /** Passes nothing on any more, as when a machine has vanished; new connections are accepted, but not answered. */
  silence(): void {
    this.#isSilent = true
    for (const { client, server } of this.#links) {
      client.pause()
      server.pause()
    }
  }

  /** Drops queries, and passes on everything else: as a pooler whose database has vanished. */
  ignoreQueries(): void {
    this.#ignoresQueries = true
  }

  /** Passes everything on again, also what has arrived during a silence. */
  resume(): void {
    this.#isSilent = false
    this.#ignoresQueries = false
    this.#refuses = false
    for (const { client, server } of this.#links) {
      client.resume()
      server.resume()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    this.#listener.close()
    await once(this.#listener, 'close')
  }

  #connect(client: net.Socket) {
    if (this.#refuses) return client.destroy()
    const server = net.connect(Number(this.#target.port), this.#target.hostname)
    const link: Link = { client, server, isHidden: false }
    this.#links.add(link)
    for (const socket of [client, server]) {
      socket.on('error', () => this.#end(link))
      socket.on('close', () => this.#end(link))
      if (this.#isSilent) socket.pause()
    }
    client.on('data', (chunk: Buffer) => this.#forward(link, chunk))
    server.on('data', (chunk) => {
      // The server has answered, so the COMMIT has taken effect.
      if (link.isHidden) this.#end(link)
      else client.write(chunk)
    })
  }

  #forward(link: Link, chunk: Buffer) {
    if (this.#ignoresQueries && isQuery(chunk)) return
    const fault = this.#faultOf(chunk)
    if (fault === 'lose') return this.#end(link)
    link.isHidden ||= fault === 'hide'
    link.server.write(chunk)
  }

  #faultOf(chunk: Buffer): StatementFault | undefined {
    if (!isQuery(chunk)) return undefined
    const sql = sqlOf(chunk)
    return (isCommit(sql) ? this.onCommit?.() : undefined) ?? this.onStatement?.(sql)
  }

  #end(link: Link) {
    this.#links.delete(link)
    link.client.destroy()
    link.server.destroy()
  }
}

// A simple query ('Q', a length, the SQL), or the first message of one with parameters ('P', a length, a name, the SQL).
const isQuery = (chunk: Buffer) => chunk[0] === 0x51 || chunk[0] === 0x50

// The SQL of ours fits into one chunk.
function sqlOf(chunk: Buffer): string {
  const [first = '', second = ''] = chunk.toString('latin1', 5).split('\0', 2)
  return chunk[0] === 0x51 ? first : second
}

const isCommit = (sql: string) => /(?:^|; )commit$/.test(sql)
