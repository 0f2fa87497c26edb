import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createRelay, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileStore } from '@tus/file-store'
import { Server } from '@tus/server'
import Uppy from '@uppy/core'
import Tus from '@uppy/tus'
import { Upload } from 'tus-js-client'
import { expect, onTestFinished, test } from 'vitest'
import { emptyService } from '../../support/empty-service.ts'
import { ask, type Service } from '../../support/start.ts'
import { metadataOf, offsetStream, tus, tusHeaders, urlOf } from '../../support/tus.ts'

const mebibyte = 1_048_576

// Retries without a pause: the tests cut the line, and wait for nothing.
const retryDelays = Array.from({ length: 100_000 }, () => 0)

const authorize = async ({ tokenOf }: Service) => ({
  authorization: `Bearer ${await tokenOf('admin')}`,
})

test.each([
  ['in one request', {}],
  ['in chunks', { chunkSize: 700_000 }],
  ['with the first bytes in the creation', { uploadDataDuringCreation: true, chunkSize: 2_000_000 }],
  ['with methods in a header', { overridePatchMethod: true }],
])('tus-js-client uploads %s, over a line that is cut', async (_how, options) => {
  await using service = await emptyService()
  await using line = await cutLine(service.port, { afterBytes: 1_500_000, cuts: 3 })
  const bytes = randomBytes(5 * mebibyte)
  const headers = await authorize(service)
  const progress: number[] = []

  await new Promise<void>((resolve, reject) => {
    new Upload(bytes, {
      ...options,
      endpoint: `http://127.0.0.1:${line.port}/api/uploads/`,
      metadata: { path: 'a/big.bin', filetype: 'text/plain' },
      headers,
      retryDelays,
      onProgress: (sent) => progress.push(sent),
      onSuccess: () => resolve(),
      onError: reject,
    }).start()
  })

  const { bytes: served } = await service.call('GET', '/static/a/big.bin')
  expect(served.equals(bytes)).toBe(true)
  expect(progress.at(-1)).toBe(bytes.length)
})

test('tus-js-client ends an upload that it aborts', async () => {
  await using service = await emptyService()
  const headers = await authorize(service)
  const url = urlOf(await tus(service).create('a', 10, { body: 'abc' }))

  await Upload.terminate(`http://127.0.0.1:${service.port}${url}`, { headers })

  expect((await tus(service).head(url)).status).toBe(410)
})

test('Uppy uploads over a line that is cut', async () => {
  await using service = await emptyService()
  await using line = await cutLine(service.port, { afterBytes: 1_500_000, cuts: 2 })
  const bytes = randomBytes(4 * mebibyte)
  const uppy = new Uppy().use(Tus, {
    endpoint: `http://127.0.0.1:${line.port}/api/uploads/?folder=from/uppy`,
    headers: await authorize(service),
    retryDelays,
    chunkSize: 3 * mebibyte,
  })
  // In Node tus-js-client reads a buffer; Uppy asks for the size that a Blob has.
  const data: unknown = Object.assign(bytes, { size: bytes.length })
  uppy.addFile({ name: 'big.bin', type: 'video/mp4', data: data as Blob })

  const result = await uppy.upload()

  expect(result?.failed?.map(({ error }) => error)).toEqual([])
  const { bytes: served } = await service.call('GET', '/static/from/uppy/big.bin')
  expect(served.equals(bytes)).toBe(true)
})

test('offsets, lengths and statuses are those of @tus/server', async () => {
  await using service = await emptyService()
  const folder = mkdtempSync(join(tmpdir(), 'tus-oracle-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const oracle = new Server({
    path: '/api/uploads',
    datastore: new FileStore({ directory: folder }),
  })
  const server = createServer((request, response) => void oracle.handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())

  const expected = await protocolOf((server.address() as AddressInfo).port, {})
  const actual = await protocolOf(service.port, await authorize(service))

  expect(actual).toEqual(expected)
})

/** What a server answers to the requests of one upload, as far as the protocol rules it. */
async function protocolOf(port: number, authorization: Record<string, string>) {
  const answers: unknown[] = []
  const send = async (method: string, url: string, headers: Record<string, string>, body = '') => {
    const path = new URL(url, 'http://x').pathname
    const answer = await ask(port, {
      method,
      path,
      body,
      headers: { ...tusHeaders, ...authorization, ...headers },
    })
    const { 'upload-offset': offset, 'upload-length': length } = answer.headers
    const { 'upload-metadata': metadata, 'upload-defer-length': deferred } = answer.headers
    // A response to a creation without bytes may have an offset.
    const known = method === 'POST' ? {} : { offset, length, metadata, deferred }
    answers.push([method, answer.status, answer.status < 300 && known])
    return answer
  }
  const named = { 'upload-metadata': metadataOf({ path: 'a.txt' }) }
  const bytes = (offset: number) => ({
    'content-type': offsetStream,
    'upload-offset': String(offset),
  })
  const url = urlOf(await send('POST', '/api/uploads', { ...named, 'upload-length': '10' }))
  await send('HEAD', url, {})
  await send('PATCH', url, bytes(0), 'abcd')
  await send('PATCH', url, bytes(0), 'abcd')
  await send('PATCH', url, bytes(7), 'abc')
  await send('HEAD', url, {})
  await send('PATCH', url, bytes(4), 'efghij')
  await send('HEAD', url, {})
  const deferred = urlOf(await send('POST', '/api/uploads', { ...named, 'upload-defer-length': '1' }))
  await send('HEAD', deferred, {})
  await send('PATCH', deferred, bytes(0), 'ab')
  await send('DELETE', deferred, {})
  await send('POST', '/api/uploads', named)
  return answers
}

/** A relay that cuts so many connections, each once it has passed this many bytes on. */
async function cutLine(port: number, { afterBytes, cuts }: { afterBytes: number; cuts: number }) {
  const sockets = new Set<Socket>()
  let left = cuts
  const relay = createRelay((client) => {
    const service = connect(port, '127.0.0.1')
    let passed = 0
    for (const socket of [client, service]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    client.on('data', (chunk) => {
      passed += chunk.length
      service.write(chunk)
      if (left === 0 || passed < afterBytes) return
      left -= 1
      client.destroy()
      service.destroy()
    })
    client.on('end', () => service.end())
    service.pipe(client)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    port: (relay.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      relay.close()
      await once(relay, 'close')
    },
  }
}
