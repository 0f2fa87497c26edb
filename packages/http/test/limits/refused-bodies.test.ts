import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

test('a client that sends a too large body can read the 413, on a connection that stays open', async () => {
  await using service = await start()
  const body = 'x'.repeat(4_000_000)

  const text = await service.raw(
    'POST /things/abc HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n' +
      `content-length: ${body.length}\r\n\r\n${body}` +
      'GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  )

  expect(text.match(/HTTP\/1\.1 \d+|"code":"\w+"/g)).toEqual([
    'HTTP/1.1 413',
    '"code":"body_too_large"',
    'HTTP/1.1 200',
  ])
})
