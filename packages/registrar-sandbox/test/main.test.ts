import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'

const main = join(import.meta.dirname, '../dist/main.js')

function run(env: Record<string, string>) {
  return spawn(process.execPath, [main], { env: { PATH: process.env.PATH, ...env } })
}

/** The messages of a program, until it ends; `onStart` gets its address, and what it does precedes the end. */
async function logOf(child: ReturnType<typeof run>, signal: NodeJS.Signals, onStart: (url: URL) => Promise<void>) {
  const exited = once(child, 'exit')
  const logged: Record<string, string>[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    const entry: Record<string, string> = JSON.parse(line)
    logged.push(entry)
    if (entry.msg !== 'sandbox listening') continue
    await onStart(new URL(entry.url ?? '')).finally(() => child.kill(signal))
  }
  expect(await exited).toEqual([0, null])
  return logged
}

const access = { ApiUser: 'sandbox', UserName: 'sandbox', Command: 'namecheap.domains.getTldList' }

/** The status of a call by the development key, and the answer's own. */
async function call(url: URL, ClientIp: string) {
  const params = { ...access, ApiKey: 'sandbox-key-for-development-only', ClientIp }
  const response = await fetch(`${url}?${new URLSearchParams(params)}`)
  const [, answer] = /Status="(\w+)"/.exec(await response.text()) ?? []
  return [response.status, answer]
}

test.each(['SIGTERM', 'SIGINT'] as const)('it says when it listens and %s ends it in order', async (signal) => {
  const logged = await logOf(run({ PORT: '0' }), signal, async (url) => {
    const health = await fetch(new URL('/health', url))
    expect(await health.json()).toMatchObject({ status: 'ok' })
  })
  expect(logged.at(-1)).toMatchObject({ msg: 'sandbox stopping', signal })
})

test('an invalid environment exits with all faults listed', async () => {
  const child = run({ PORT: '99999', SANDBOX_RATE: 'often', LOG_LEVEL: 'loud' })
  const exited = once(child, 'exit')
  const complaints = (await child.stderr.toArray()).join('')

  expect(await exited).toEqual([1, null])
  expect(complaints).toMatch(/PORT: [\s\S]*SANDBOX_RATE: [\s\S]*LOG_LEVEL: /)
})

test("without variables it listens on loopback with the development key and the registrar's limits", async () => {
  await logOf(run({ PORT: '0', SANDBOX_FILE: '' }), 'SIGTERM', async (url) => {
    expect(url.hostname).toBe('127.0.0.1')
    expect(await call(url, '192.0.2.1')).toEqual([200, 'ERROR'])
    for (let count = 1; count < 20; count++) expect(await call(url, '127.0.0.1')).toEqual([200, 'OK'])
    expect(await call(url, '127.0.0.1')).toEqual([405, undefined])
  })
})
