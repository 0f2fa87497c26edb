import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { createApp, createLogger, createMetrics, forwardingCheck } from '@domains-and-files/http'
import { SqliteSql } from '@domains-and-files/persistence'
import { Compressor } from '../../src/blobs/compressor.ts'
import { FolderBlobStore } from '../../src/blobs/disk/folder-blob-store.ts'
import type { Catalog } from '../../src/catalog/catalog.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/sqlite-catalog.ts'
import type { FileRow } from '../../src/catalog/tables.ts'
import { readConfig } from '../../src/config.ts'
import { categoryOf, contentTypeOf } from '../../src/files/media-type.ts'
import type { ContentCoding } from '../../src/rfc9110/content-codings.ts'
import { documentRawRoute, staticSchema } from '../../src/routes/static.ts'
import { ContentCache } from '../../src/serving/content-cache.ts'
import { readableFiles } from '../../src/serving/readable-files.ts'
import { StaticHandler } from '../../src/serving/static-handler.ts'
import { AccessRules } from '../../src/sharing/access-rules.ts'
import { sharingTables } from '../../src/sharing/tables.ts'
import { alter } from './stored-contents.ts'

/** An answer as it came over the wire; header names in lower case, values as they were. */
export interface Raw {
  status: number
  headers: Record<string, string>
  body: Buffer
}

export interface StaticService extends AsyncDisposable {
  port: number
  dataDir: string
  store: FolderBlobStore
  catalog: Catalog
  compressor: Compressor
  /** Log lines, parsed. */
  lines: () => Record<string, unknown>[]
  put: (path: string, content: string | Buffer) => Promise<FileRow>
  /** Sends a request as it is written, and reads until the connection is closed. */
  send: (text: string | Buffer) => Promise<Raw>
  /** GET, or another method, of a target exactly as given. */
  ask: (target: string, headers?: Record<string, string>, method?: string) => Promise<Raw>
  /** Sends a GET and hands back the socket, from which nothing has been read. */
  begin: (target: string) => Promise<Socket>
  /** Sends this as it stands, on a connection that it gives to read. */
  open: (text: string) => Promise<Socket>
  /** Takes the bytes of a content, or of one of its forms, off the disk. */
  lose: (row: FileRow, form?: ContentCoding) => Promise<void>
  /** Leaves a content only so many bytes. */
  cut: (row: FileRow, length: number) => Promise<void>
}

// STATIC_FRONT names a module that puts a proxy before the service, through which all is asked then (see test/e2e/run-proxies).
const front: Front | undefined = process.env.STATIC_FRONT ? (await import(process.env.STATIC_FRONT)).front : undefined

interface Front {
  /** Settings of the service that the proxy needs. */
  env: Record<string, string>
  standBefore: (port: number, dataDir: string) => Promise<{ port: number } & AsyncDisposable>
}

const secret = 'a secret of these tests that is long enough'

/** Metrics are protected by it, as in the service. */
export const metricsToken = 'metrics-token-of-tests'

interface StaticOptions {
  /** By default a second ahead, so that the dates of new files are reliable (RFC 9110, 8.8.2.2). */
  now?: () => number
}

/** The static routes before a real store and catalog, listening; files are put into them directly. */
export async function startStatic(
  env: Record<string, string> = {},
  { now = () => Date.now() + 1000 }: StaticOptions = {},
): Promise<StaticService> {
  const outside = await mkdtemp(join(tmpdir(), 'static-service-'))
  const dataDir = join(outside, 'data')
  const config = readConfig({ JWT_SECRET: secret, DATA_DIR: dataDir, ...front?.env, ...env })
  const written: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      written.push(...String(chunk).trim().split('\n'))
      done()
    },
  })
  const log = createLogger({ name: 'static-service', level: 'info' }, sink)
  const store: FolderBlobStore = await FolderBlobStore.open(dataDir, {
    isReferenced: (digest) => catalog.isReferenced(digest),
    onError: (error) => log.error({ err: error }, 'not collected'),
  })
  const catalog = await openSqliteCatalog(dataDir)
  catalog.onFree = (digests) => store.collect(digests)
  const compressor = new Compressor({ store, log })
  const rules = config.static
  const cache = new ContentCache({ store, catalog, compressor, policies: rules })
  const database = new SqliteSql({ file: ':memory:', migrations: { sharing: sharingTables } })
  const access = await AccessRules.open(database, { isPublicByDefault: true, isExclusive: true })
  const files = readableFiles({ cache, rules: access, findReader: async () => undefined })
  const isForwarded = forwardingCheck(config.trustProxy)
  const app = await createApp(
    {
      about: { title: 'test', version: '0', description: '' },
      log,
      trustProxy: config.trustProxy,
      corsOrigin: config.corsOrigin,
      metrics: await createMetrics(metricsToken),
      health: () => ({ checks: {} }),
      // A busy machine must not shed the requests of tests.
      maxLoopDelayMs: 60_000,
      maxQueueMs: 60_000,
      rawRoutes: [new StaticHandler({ cache, files, rules, isForwarded, now })],
    },
    async (routes) => documentRawRoute(routes, '/static/*', staticSchema),
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  const own = app.server.address() as AddressInfo // An address with a port, since we listen on one.
  const proxy = await front?.standBefore(own.port, dataDir)
  const port = proxy?.port ?? own.port
  const send = (text: string | Buffer) => exchange(port, text)
  async function open(text: string): Promise<Socket> {
    const socket = connect(port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.write(text)
    return socket
  }

  return {
    port,
    dataDir,
    store,
    catalog,
    compressor,
    lines: () => written.map((line) => JSON.parse(line)),
    send,
    put: (path, content) => put(store, catalog, path, Buffer.from(content)),
    ask: (target, headers = {}, method = 'GET') => send(request(target, headers, method)),
    begin: (target) => open(request(target, {}, 'GET')),
    open,
    lose: async ({ digest }, coding) => alter(dataDir, { digest, coding }, () => undefined),
    cut: async ({ digest }, length) => alter(dataDir, { digest }, (bytes) => bytes.subarray(0, length)),
    async [Symbol.asyncDispose]() {
      await proxy?.[Symbol.asyncDispose]()
      await app.close()
      await compressor.close()
      await catalog.close()
      await store.close()
      await rm(outside, { recursive: true })
    },
  }
}

/** The bytes of an answer's headers and body, from all that came until the connection was closed. */
export function parse(all: Buffer): Raw {
  const end = all.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = all.subarray(0, end).toString('latin1').split('\r\n')
  const pairs = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  const body = all.subarray(end + 4)
  return { status: Number(statusLine.split(' ')[1]), headers: Object.fromEntries(pairs), body }
}

/** Speaks to a port and collects what it says until it closes. */
export async function exchange(port: number, text: string | Buffer): Promise<Raw> {
  const socket = connect(port, '127.0.0.1')
  socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return parse(Buffer.concat(chunks))
}

export const request = (target: string, headers: Record<string, string>, method: string) =>
  [
    `${method} ${target} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n')

async function put(store: FolderBlobStore, catalog: Catalog, path: string, content: Buffer) {
  await using draft = await store.draft()
  await draft.write(Buffer.from(content))
  const contentType = await contentTypeOf(path, draft.head)
  await draft.seal()
  const blob = await draft.keep()
  const file = {
    path,
    ...blob,
    contentType,
    category: categoryOf(contentType),
    uploadedBy: 'tester',
  }
  const [row] = (await catalog.writes.put({ files: [file] })).rows
  if (!row) throw new Error('a stored file has no row')
  return row
}
