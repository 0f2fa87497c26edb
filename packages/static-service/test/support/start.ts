import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type Agent, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createLogger } from '@domains-and-files/http'
import { z } from 'zod'
import { slowClients } from '../../../../test/support/everything.ts'
import { password } from '../../../../test/support/test-users.ts'
import type { SliceLimits } from '../../src/catalog/changes/group.ts'
import { readConfig } from '../../src/config.ts'
import { createService } from '../../src/service.ts'
import { startSharedStores } from './shared-stores.ts'
import { storedIn } from './stored-contents.ts'
import { users } from './test-users.ts'

export { filesBelow } from './stored-contents.ts'

const FileAnswer = z.looseObject({
  path: z.string(),
  name: z.string(),
  category: z.string(),
  content_type: z.string(),
  size: z.number(),
  sha256: z.string(),
  url: z.string(),
  uploaded_by: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
})

export type FileAnswer = z.infer<typeof FileAnswer>

export interface Node {
  name: string
  path: string
  type: string
  size?: number | undefined
  file_count?: number | undefined
  total_size?: number | undefined
  children?: Node[] | null | undefined
  truncated?: boolean | undefined
}

const Node: z.ZodType<Node> = z.strictObject({
  name: z.string(),
  path: z.string(),
  type: z.string(),
  size: z.number().optional(),
  content_type: z.string().optional(),
  file_count: z.number().optional(),
  total_size: z.number().optional(),
  children: z.lazy(() => z.array(Node)).nullish(),
  truncated: z.boolean().optional(),
})

/** What answers look like to these tests; each field is there only on some of them. */
const Body = z.looseObject({
  code: z.string().optional(),
  detail: z.string().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  // Those of a tree are no list: see `bytes`.
  files: z.array(FileAnswer).optional().catch(undefined),
  tree: Node.optional(),
  categories: z.array(z.object({ category: z.string(), file_count: z.number(), total_size: z.number() })).optional(),
  versions: z.union([z.number(), z.array(z.looseObject({ version: z.string() }))]).optional(),
  pagination: z
    .looseObject({
      total_items: z.number(),
      total_pages: z.number(),
      total_is_exact: z.boolean().optional(),
    })
    .optional(),
  path: z.string().optional(),
  sha256: z.string().optional(),
  size: z.number().optional(),
})

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  bytes: Buffer
  body: z.infer<typeof Body>
}

export interface Call {
  body?: Buffer | string | undefined
  json?: unknown
  headers?: Record<string, string> | undefined
  user?: string | undefined
}

/** A part of a form as it is sent: a field, or a file when it has a file name. */
export interface Part {
  name: string
  content: string | Buffer
  filename?: string | undefined
  type?: string | undefined
}

export interface Service extends AsyncDisposable {
  port: number
  dataDir: string
  lines: () => Record<string, unknown>[]
  call: (method: string, path: string, options?: Call) => Promise<Answer>
  /** Sends a form of these parts; `to` is `upload` or `upload/batch`. */
  send: (to: string, parts: Part[], options?: Call) => Promise<Answer>
  /** Stores one file under a whole path. */
  put: (path: string, content?: string | Buffer, options?: Call) => Promise<Answer>
  /** Begins an upload of which only this text is sent, and hands over the socket. `fields`: of its header, with their ends. */
  begin: (body: string, announced: number, fields?: string) => Promise<Socket>
  tokenOf: (user: string) => Promise<string>
  /** All stored contents and compressed forms, in files and rows, and what lies in `tmp`. */
  storedContents: () => Promise<string[]>
  close: () => Promise<void>
}

interface Options {
  env?: Record<string, string>
  dataDir?: string
  /** By default those of a service. */
  sliceLimits?: SliceLimits | undefined
}

/**
 * The real service on a free port; users `admin`, `editor` and `viewer`. With TEST_STORAGE=shared it is on PostgreSQL and
 * S3, unless the test has stores or a data folder of its own.
 */
export async function start(options: Options = {}): Promise<Service> {
  const isShared = process.env.TEST_STORAGE === 'shared' && !options.dataDir && !options.env?.DATABASE_URL
  const stores = isShared ? await startSharedStores() : undefined
  const dataDir = options.dataDir ?? join(mkdtempSync(join(tmpdir(), 'static-service-')), 'data')
  const written: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      written.push(...String(chunk).trim().split('\n'))
      done()
    },
  })
  const config = readConfig({
    DATA_DIR: dataDir,
    JWT_SECRET: 'a secret of these tests that is long enough',
    ADMIN_USERNAME: 'admin',
    ADMIN_PASSWORD: password,
    METRICS_TOKEN: 'metrics-token-of-tests',
    // The services of a test process share sessions, for longer than its tests take on any machine.
    TOKEN_TTL: '86400',
    // Most tests want deleted contents to leave the disk at once.
    KEEP_HISTORY_DAYS: '0',
    ...slowClients,
    ...stores?.env,
    ...options.env,
  })
  const log = createLogger({ name: 'static-service', level: 'info' }, sink)
  mkdirSync(dataDir, { recursive: true })
  writeFileSync(config.usersFile, users)
  // A busy machine must not shed the requests of tests.
  const limits = { maxLoopDelayMs: 60_000, maxQueueMs: 60_000 }
  const catalog = { ...config.catalog, limits: options.sliceLimits }
  const app = await createService({ ...config, ...limits, catalog }, log)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo // An address with a port, since we listen on one.
  const tokenOf = (user: string) => {
    const token = tokens.get(user) ?? logIn(port, user)
    tokens.set(user, token)
    return token
  }
  const call: Service['call'] = async (method, path, { body, json, headers, user } = {}) => {
    const authorization = user === 'nobody' ? {} : await bearer(user ?? 'admin')
    const sent = json === undefined ? body : JSON.stringify(json)
    const type = json === undefined ? {} : { 'content-type': 'application/json' }
    return ask(port, {
      method,
      path,
      headers: { ...authorization, ...type, ...headers },
      body: sent,
    })
  }
  const bearer = async (user: string) => ({ authorization: `Bearer ${await tokenOf(user)}` })
  const send: Service['send'] = (to, parts, { headers, user } = {}) =>
    call('POST', `/api/files/${to}`, {
      body: writeForm(parts),
      headers: { 'content-type': `multipart/form-data; boundary=${boundary}`, ...headers },
      user,
    })
  return {
    port,
    dataDir,
    lines: () => written.map((line) => JSON.parse(line)),
    call,
    send,
    put: (path, content = path, options) =>
      send(
        'upload',
        [
          { name: 'path', content: path },
          { name: 'file', content, filename: 'x' },
        ],
        options,
      ),
    begin: async (body, announced, fields = '') => {
      const socket = connect(port, '127.0.0.1')
      const { authorization } = await bearer('admin')
      socket.write(
        `POST /api/files/upload HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n` +
          `content-type: multipart/form-data; boundary=${boundary}\r\ncontent-length: ${announced}\r\n${fields}\r\n${body}`,
      )
      return socket
    },
    tokenOf,
    storedContents: async () => (stores ? stores.storedContents(dataDir) : storedIn(dataDir)),
    close: async () => {
      await app.close()
    },
    [Symbol.asyncDispose]: async () => {
      await app.close()
      await stores?.[Symbol.asyncDispose]()
      if (!options.dataDir) rmSync(dirname(dataDir), { recursive: true, force: true })
    },
  }
}

export const boundary = 'boundary-of-tests'

export const writeForm = (parts: Part[]): Buffer =>
  Buffer.concat([
    ...parts.flatMap(({ name, content, filename, type }) => [
      Buffer.from(
        `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${
          filename === undefined ? '' : `; filename="${filename}"`
        }\r\n${filename === undefined ? '' : `content-type: ${type ?? 'text/x-client-claim'}\r\n`}\r\n`,
      ),
      Buffer.from(content),
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ])

export interface Asked {
  method: string
  path: string
  headers: Record<string, string>
  body?: Buffer | string | undefined
  /** Of connections for several requests; by default each has its own. */
  agent?: Agent
}

/** One request, its path sent exactly as given. */
export function ask(port: number, { agent, ...asked }: Asked): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const { method, path, headers } = asked
  const to = { port, host: '127.0.0.1' }
  const sent = request({ ...to, method, path, headers, agent: agent ?? false })
  sent.on('error', (error) => {
    // A server may close an idle connection at any time (RFC 9112, 9.5).
    if (sent.reusedSocket) resolve(ask(port, asked))
    else reject(error)
  })
  sent.on('response', (response) => {
    const answer = async () => {
      const bytes = await buffer(response)
      const isJson = /json/.test(response.headers['content-type'] ?? '') && bytes.length > 0
      const json: unknown = isJson ? JSON.parse(bytes.toString()) : {}
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        bytes,
        get body() {
          return Body.parse(json)
        },
      }
    }
    answer().then(resolve, reject)
  })
  sent.end(asked.body)
  return promise
}

// A busy machine makes a service that has just started shed load: that is no fault of the test.
export async function logIn(port: number, username: string): Promise<string> {
  for (;;) {
    const { status, bytes } = await ask(port, {
      method: 'POST',
      path: '/api/auth/login',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username, password }),
    })
    if (status === 503) continue
    return z.object({ access_token: z.string() }).parse(JSON.parse(bytes.toString())).access_token
  }
}

// The services of a test run have the same users and the same secret.
const tokens = new Map<string, Promise<string>>()
