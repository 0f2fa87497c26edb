import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { createLogger } from '@domains-and-files/http'
import { onTestFinished } from 'vitest'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'

/** Starts a console with these settings on a free port; it is closed after the test. Returns its URL. */
export async function startConsole(env: Record<string, string> = {}) {
  const config = readConfig({
    DOMAIN_SERVICE_URL: 'https://domains.example',
    STATIC_SERVICE_URL: 'https://files.example',
    ...env,
  })
  // A busy machine must not shed the requests of tests.
  const limits = { maxLoopDelayMs: 60_000, maxQueueMs: 60_000 }
  const log = createLogger({ name: 'console', level: 'silent' })
  const app = await buildApp({ ...config, ...limits }, log)
  onTestFinished(() => app.close())
  return app.listen({ host: '127.0.0.1', port: 0 })
}

/** What is sent, as it is on the wire. */
export async function download(url: string, codings: string) {
  const headers = { 'accept-encoding': codings }
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(url, { headers }, resolve).on('error', reject),
  )
  return { coding: response.headers['content-encoding'], body: await buffer(response) }
}
