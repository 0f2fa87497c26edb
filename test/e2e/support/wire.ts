import { once } from 'node:events'
import { request as requestPlain } from 'node:http'
import { type RequestOptions, request as requestTls } from 'node:https'
import { buffer } from 'node:stream/consumers'
import type { Front } from './fronts.ts'

export interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: string | Buffer
  /** The address that the request comes from. */
  from?: string
}

export interface Told {
  status: number
  /** As they came, lower-cased names, sorted: what is sent twice is there twice. */
  headers: [name: string, value: string][]
  body: Buffer
}

/** Somebody to be asked: a service itself, or one of the names of a proxy before it. */
export interface Side {
  options: RequestOptions
  /** Before each path. */
  prefix: string
}

export const direct = (port: number): Side => ({ options: { port }, prefix: '' })

export const through = ({ port, authority }: Front, name: string, prefix = ''): Side => ({
  options: { port, ca: authority, servername: name, headers: { host: name } },
  prefix,
})

/** Begins a request; its body is to be written, and its answer read, by who asks. */
export function begin(
  { options, prefix }: Side,
  path: string,
  { method, headers, from }: Asked = {},
) {
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
  request.end(asked.body)
  const [response] = await once(request, 'response')
  const body = await buffer(response)
  const raw: string[] = response.rawHeaders
  const headers = raw.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1] ?? '']] : [],
  )
  return { status: response.statusCode, headers: headers.toSorted(), body }
}

export const headerOf = ({ headers }: Told, name: string) =>
  headers.find(([each]) => each === name)?.[1] ?? ''

/** Logs `boss` in, and gives the field to send from then on. */
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

/** The bytes of a form before and after those of its one file. */
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
