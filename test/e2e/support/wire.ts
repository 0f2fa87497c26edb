import { once } from 'node:events'
import { request as requestPlain } from 'node:http'
import { type RequestOptions, request as requestTls } from 'node:https'
import { buffer } from 'node:stream/consumers'
import type { Front } from './fronts.ts'

export interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
  /** Local address of the connection. */
  from?: string
}

export interface Told {
  status: number
  /** As received, names in lower case, sorted; repeated fields stay repeated. */
  headers: [name: string, value: string][]
  body: Buffer
}

/** Where to send requests: a service, or a host name of the proxy in front of it. */
export interface Side {
  options: RequestOptions
  /** Prepended to each path. */
  prefix: string
}

export const direct = (port: number): Side => ({ options: { port }, prefix: '' })

export const through = ({ port, authority }: Front, name: string, prefix = ''): Side => ({
  options: { port, ca: authority, servername: name, headers: { host: name } },
  prefix,
})

/** Starts a request; the caller writes the body and reads the response. */
export function begin({ options, prefix }: Side, path: string, { method, headers, from }: Asked = {}) {
  const request = options.ca ? requestTls : requestPlain
  return request({
    ...options,
    ...(from ? { localAddress: from } : {}),
    host: '127.0.0.1',
    method: method ?? 'GET',
    path: prefix + path,
    headers: { ...options.headers, ...headers },
    agent: false,
  })
}

export async function ask(side: Side, path: string, asked: Asked = {}): Promise<Told> {
  const request = begin(side, path, asked)
  // A proxy may close the connection after an early response, while the rest of the body is still sent.
  request.on('error', () => undefined)
  request.end(asked.body)
  const [response] = await once(request, 'response')
  const body = await buffer(response)
  const raw: string[] = response.rawHeaders
  const headers = raw.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1] ?? '']] : [],
  )
  return { status: response.statusCode, headers: headers.toSorted(), body }
}

export const headerOf = ({ headers }: Told, name: string) => headers.find(([each]) => each === name)?.[1] ?? ''

/** Logs in as `boss`; returns the authorization header. */
export async function logIn(side: Side, password: string): Promise<{ authorization: string }> {
  const { body } = await ask(side, '/api/auth/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'boss', password }),
  })
  return { authorization: `Bearer ${JSON.parse(body.toString()).access_token}` }
}

const boundary = 'boundary-of-trials'
export const formType = { 'content-type': `multipart/form-data; boundary=${boundary}` }

/** The bytes of a multipart form before and after its file. */
export const frameFile = (path: string) => ({
  head: Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="path"\r\n\r\n${path}\r\n` +
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n`,
  ),
  tail: Buffer.from(`\r\n--${boundary}--\r\n`),
})

export function upload(side: Side, headers: Record<string, string>, path: string, content: Buffer) {
  const { head, tail } = frameFile(path)
  return ask(side, '/api/files/upload', {
    method: 'POST',
    headers: { ...headers, ...formType },
    body: Buffer.concat([head, content, tail]),
  })
}
