import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { systemClock } from '@domains-and-files/http'
import { expect, it, onTestFinished } from 'vitest'
import { eventId } from '../src/outbox.ts'
import { sendDelivery } from '../src/webhooks/dispatcher.ts'

const secret = `whsec_${Buffer.alloc(32, 'secret').toString('base64')}`

/** The receiver of docs/operations.md, at a port of its own. @returns its URL. */
async function startReceiver(chatUrl: string): Promise<string> {
  const docs = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8')
  const [, code = ''] = /```js\n([^`]*standardwebhooks(?:.|\n)*?)```/.exec(docs) ?? []
  const listening = "listen(0, '127.0.0.1', function () { console.log(this.address().port) })"
  const program = code.replace('listen(8080)', listening)
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: join(import.meta.dirname, '..'),
    env: { PATH: process.env.PATH, WEBHOOK_SECRET: secret, CHAT_URL: chatUrl },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill())
  const [port] = await once(createInterface(child.stdout), 'line')
  return `http://127.0.0.1:${port}/`
}

it('the receiver of the documentation posts what it has verified to a chat, and nothing else', async () => {
  const posted: unknown[] = []
  let status = 200
  const chat = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    posted.push(JSON.parse(text))
    response.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await once(chat, 'listening')
  onTestFinished(() => void chat.close())
  const { port } = chat.address() as AddressInfo // It listens on a port.
  const url = await startReceiver(`http://127.0.0.1:${port}/`)
  const options = {
    clock: systemClock,
    networks: ['127.0.0.0/8'],
    closing: new AbortController().signal,
  }
  const event = {
    id: eventId(1),
    type: 'zone.changed',
    at: '2027-01-15T09:30:00.000Z',
    by: 'admin',
    request_id: null,
    data: { domain: 'example.com' },
  }

  const sent = await sendDelivery({ url, secret }, event, options)
  const wrong = `whsec_${'A'.repeat(43)}=`
  const forged = await sendDelivery({ url, secret: wrong }, event, options)
  status = 503
  const failed = await sendDelivery({ url, secret }, event, options)

  expect([sent, forged, failed].map((attempt) => attempt.status)).toEqual([200, 400, 503])
  const text = 'zone.changed: {"domain":"example.com"}'
  expect(posted).toEqual([{ text }, { text }])
})
