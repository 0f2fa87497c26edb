import net from 'node:net'
import { afterAll, beforeAll } from 'vitest'
import { start as startDomain } from '../../packages/domain-service/test/support/start.ts'
import type { Sandbox } from '../../packages/registrar-sandbox/src/index.ts'
import { logIn, start as startStatic } from '../../packages/static-service/test/support/start.ts'

export const names = ['domain-service', 'static-service'] as const
export type Name = (typeof names)[number]

/** One of the two services on its own port. */
export interface Target extends AsyncDisposable {
  name: Name
  port: number
  /** Token of `admin`, `editor` or `viewer`. */
  tokenOf: (user: string) => Promise<string>
  lines: () => Record<string, unknown>[]
  /** The registrar behind the domain service. */
  sandbox?: Sandbox
}

export async function startTarget(name: Name, env: Record<string, string> = {}): Promise<Target> {
  if (name === 'static-service') {
    const service = await startStatic({ env })
    await service.put('a.txt', 'hello')
    return { ...service, name }
  }
  const service = await startDomain({ env })
  const port = Number(new URL(service.url).port)
  return { ...service, name, port, tokenOf: (user) => logIn(port, user) }
}

/** One service for all tests of a `describe` block. */
export function shareTarget(name: Name, env: Record<string, string> = {}): () => Target {
  let target: Target | undefined
  beforeAll(async () => {
    target = await startTarget(name, env)
  })
  afterAll(async () => {
    await target?.[Symbol.asyncDispose]()
  })
  return () => {
    if (!target) throw new Error('asked for before it was started')
    return target
  }
}

/** Sends raw bytes and reads until the service closes the connection. */
export async function exchange(port: number, bytes: string | Buffer): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  return readAll(socket)
}

/** Everything received until the connection is closed or reset. */
export async function readAll(socket: net.Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)))
  socket.on('error', () => undefined)
  socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  return promise
}

/** The responses in the received bytes: status, problem code, request id. */
export function answersIn(text: string) {
  const starts = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
  return starts.map((start, at) => {
    const answer = text.slice(start.index, starts[at + 1]?.index)
    return {
      status: Number(start[1]),
      code: /"code":"(\w+)"/.exec(answer)?.[1],
      type: /content-type: ([^\r]*)/i.exec(answer)?.[1],
      id: /x-request-id: ([^\r]*)/i.exec(answer)?.[1],
    }
  })
}
