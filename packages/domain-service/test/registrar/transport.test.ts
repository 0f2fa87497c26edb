import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { expect, test, vi } from 'vitest'
import { leaseLost } from '../../src/errors.ts'
import { CallFailed } from '../../src/registrar/call-failed.ts'
import { RegistrarTransport } from '../../src/registrar/transport.ts'
import { getHosts } from '../support/expected.ts'
import { zoneAnswer } from '../support/responses.ts'

const call = { ...getHosts, params: {} }

const openTransport = (url: string) =>
  new RegistrarTransport(
    { url, apiUser: 'tester', readApiKey: () => 'key', userName: 'tester', clientIp: '127.0.0.1' },
    60_000,
  )

/** A registrar that answers when the test says so. */
async function startRegistrar() {
  const waiting: ServerResponse[] = []
  const server = createServer((_request, response) => waiting.push(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // An address with a port, since it listens on one.
  return {
    url: `http://127.0.0.1:${port}/`,
    waiting,
    answer: () => waiting.shift()?.end(zoneAnswer([])),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

test('a call is sent, and counts as sent, when a connection is free', async () => {
  await using registrar = await startRegistrar()
  const transport = openTransport(registrar.url)
  const onSend = vi.fn()

  const calls = Array.from({ length: 17 }, () => transport.call(call, onSend))
  await expect.poll(() => registrar.waiting.length).toBe(16)
  expect(onSend).toHaveBeenCalledTimes(16)
  registrar.answer()
  await expect.poll(() => onSend.mock.calls.length).toBe(17)

  await expect.poll(() => registrar.waiting.length).toBe(16)
  while (registrar.answer());
  await Promise.all(calls)
  await transport.close()
})

test('a call that is withdrawn at that moment is not sent, and its connection serves the next one', async () => {
  await using registrar = await startRegistrar()
  const transport = openTransport(registrar.url)
  const withdraw = () => {
    throw leaseLost('example.com')
  }

  await expect(transport.call(call, withdraw)).rejects.toMatchObject({
    code: 'unavailable',
  })
  const next = transport.call(call, () => undefined)
  await expect.poll(() => registrar.waiting.length).toBe(1)
  registrar.answer()

  await expect(next).resolves.toBeDefined()
  await transport.close()
})

test('a call does not count as sent before the TLS handshake is done', async () => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // An address with a port, since it listens on one.
  const transport = openTransport(`https://127.0.0.1:${port}/`)
  const onSend = vi.fn()

  await expect(transport.call(call, onSend)).rejects.toMatchObject({ kind: 'unknown' })

  expect(onSend).not.toHaveBeenCalled()
  await transport.close()
  server.close()
})

const maxBytes = 10 * 1024 * 1024

test.each([
  ['of 10 MiB', 'read', () => zoneAnswer([]).padEnd(maxBytes)],
  ['of a byte more', 'registrar_bad_answer', () => zoneAnswer([]).padEnd(maxBytes + 1)],
  ['in Latin-1', 'registrar_bad_answer', () => Buffer.from(`${zoneAnswer([])}<!-- \u00e9 -->`, 'latin1')],
])('an answer %s is %s', async (_name, outcome, answerOf) => {
  await using registrar = await startRegistrar()
  const transport = openTransport(registrar.url)

  const called = transport
    .call(call, () => undefined)
    .then(
      () => 'read',
      (error: unknown) => error instanceof CallFailed && error.code,
    )
  await expect.poll(() => registrar.waiting.length).toBe(1)
  registrar.waiting.shift()?.end(answerOf())

  expect(await called).toBe(outcome)
  await transport.close()
})
