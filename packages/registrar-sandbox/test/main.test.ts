import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { readConfig } from '../src/config.ts'

const main = join(import.meta.dirname, '../dist/main.js')

function run(env: Record<string, string>) {
  return spawn(process.execPath, [main], { env: { PATH: process.env.PATH, ...env } })
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'it says when it listens and %s ends it in order',
  async (signal) => {
    const child = run({ PORT: '0' })
    const exited = once(child, 'exit')
    const logged: Record<string, string>[] = []

    for await (const line of createInterface({ input: child.stdout })) {
      const entry: Record<string, string> = JSON.parse(line)
      logged.push(entry)
      if (entry.msg !== 'sandbox listening') continue
      const health = await fetch(new URL('/health', entry.url))
      expect(await health.json()).toMatchObject({ status: 'ok' })
      child.kill(signal)
    }

    expect(await exited).toEqual([0, null])
    expect(logged.at(-1)).toMatchObject({ msg: 'sandbox stopping', signal })
  },
)

test('an invalid environment exits with all faults listed', async () => {
  const child = run({ PORT: '99999', SANDBOX_RATE: 'often', LOG_LEVEL: 'loud' })
  const exited = once(child, 'exit')
  const complaints = (await child.stderr.toArray()).join('')

  expect(await exited).toEqual([1, null])
  expect(complaints).toMatch(/PORT: [\s\S]*SANDBOX_RATE: [\s\S]*LOG_LEVEL: /)
})

test('without variables it listens on loopback with the development key', () => {
  const config = readConfig({ SANDBOX_FILE: '' })

  expect(config).toEqual({
    HOST: '127.0.0.1',
    PORT: 3003,
    SANDBOX_API_USER: 'sandbox',
    SANDBOX_API_KEY: 'sandbox-key-for-development-only',
    SANDBOX_ALLOWED_IPS: ['127.0.0.1'],
    SANDBOX_RATE: '20/minute,700/hour,8000/day',
    SANDBOX_DELAY_MS: 0,
    LOG_LEVEL: 'info',
  })
})

test.each([
  ['192.0.2.1, 192.0.2.2', ['192.0.2.1', '192.0.2.2']],
  ['*', ['*']],
])('allowed addresses %j are parsed', (text, list) => {
  const config = readConfig({ SANDBOX_ALLOWED_IPS: text })

  expect(config).toMatchObject({ SANDBOX_ALLOWED_IPS: list })
})
