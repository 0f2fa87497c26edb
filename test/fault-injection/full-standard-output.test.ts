import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reservePorts } from '../support/ports.ts'

const settings = {
  JWT_SECRET: 'a secret of these tests that is long enough',
  ADMIN_USERNAME: 'admin',
  ADMIN_PASSWORD: 'correct horse battery',
  METRICS_TOKEN: 'metrics-token-of-tests',
  REGISTRAR_URL: 'http://127.0.0.1:9/xml.response',
  REGISTRAR_API_USER: 'sandbox',
  REGISTRAR_API_KEY: 'sandbox-key-for-development-only',
  REGISTRAR_CLIENT_IP: '127.0.0.1',
}

test.each(['static-service', 'domain-service'])(
  '%s serves while standard output is on a full disk, and counts the lines that it loses',
  async (name) => {
    await using service = await startOnFullOutput(name)

    const statuses: number[] = []
    while (statuses.length < 20) {
      const { status } = await service.ask('/api/auth/me')
      if (status !== 503) statuses.push(status) // A busy machine may make a service shed load.
    }
    const dropped = async () => {
      const text = await (await service.ask('/metrics')).text()
      return Number(/^log_lines_dropped_total (\d+)$/m.exec(text)?.[1])
    }

    expect(new Set(statuses)).toEqual(new Set([401]))
    await expect.poll(dropped).toBeGreaterThanOrEqual(20)
    expect((await service.ask('/health')).status).toBe(200)
    expect(await service.stop()).toBe(0)
  },
)

async function startOnFullOutput(name: string) {
  const dataDir = mkdtempSync(join(tmpdir(), `${name}-`))
  const port = await reservePorts()
  const output = openSync('/dev/full', 'w')
  const main = join(import.meta.dirname, '../../packages', name, 'dist/main.js')
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env.PATH, PORT: String(port), DATA_DIR: dataDir, ...settings },
    stdio: ['ignore', output, 'inherit'],
  })
  closeSync(output)
  const exited = once(child, 'exit')
  const ask = (path: string) => {
    const headers = path === '/metrics' ? { authorization: `Bearer ${settings.METRICS_TOKEN}` } : {}
    return fetch(`http://127.0.0.1:${port}${path}`, { headers })
  }
  await expect
    .poll(() =>
      ask('/health').then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    .toBe(true)
  const stop = async () => {
    child.kill('SIGTERM')
    const [status] = await exited
    return status
  }
  return {
    ask,
    stop,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill('SIGKILL')
      await exited
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
