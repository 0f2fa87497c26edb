import { connect } from 'node:net'
import type { Answer, Call, Service } from './start.ts'

/** What every request of tus 1.0.0 has. */
export const tusHeaders = { 'tus-resumable': '1.0.0' }

export const offsetStream = 'application/offset+octet-stream'

/** Upload-Metadata with these values. */
export const metadataOf = (values: Record<string, string>): string =>
  Object.entries(values)
    .map(([key, value]) => `${key} ${Buffer.from(value).toString('base64')}`)
    .join(',')

/** The requests of tus, as a client that does nothing else sends them. */
export function tus({ call }: Pick<Service, 'call'>) {
  const send = (method: string, url: string, { headers, ...rest }: Call = {}) =>
    call(method, url, { headers: { ...tusHeaders, ...headers }, ...rest })
  const create = (metadata: string | Record<string, string>, length?: number, { headers, ...rest }: Call = {}) =>
    send('POST', '/api/uploads/', {
      headers: {
        'upload-metadata': typeof metadata === 'string' ? metadataOf({ path: metadata }) : metadataOf(metadata),
        ...(length === undefined ? { 'upload-defer-length': '1' } : { 'upload-length': String(length) }),
        ...(rest.body === undefined ? {} : { 'content-type': offsetStream }),
        ...headers,
      },
      ...rest,
    })
  const patch = (url: string, offset: number, body: Call['body'], options: Call = {}) =>
    send('PATCH', url, {
      ...options,
      body,
      headers: {
        'content-type': offsetStream,
        'upload-offset': String(offset),
        ...options.headers,
      },
    })
  return { send, create, patch, head: (url: string, options?: Call) => send('HEAD', url, options) }
}

/** The URL of a created upload. */
export const urlOf = ({ headers }: Answer): string => String(headers.location)

/** Where an upload continues. */
export const offsetOf = ({ headers }: Answer): number => Number(headers['upload-offset'])

/** A PATCH of which only the headers are sent; without a size its body comes in chunks. */
export async function beginPatch(
  { port, tokenOf }: Service,
  url: string,
  size?: number,
  others: Record<string, string> = {},
) {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  const headers = {
    ...tusHeaders,
    host: 'x',
    authorization: `Bearer ${await tokenOf('admin')}`,
    'content-type': offsetStream,
    'upload-offset': '0',
    ...others,
    ...(size ? { 'content-length': size } : { 'transfer-encoding': 'chunked' }),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`PATCH ${url} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return socket
}
