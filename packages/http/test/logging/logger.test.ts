import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createLogger } from '../../src/logging/logger.ts'

test.each(['authorization', 'password', 'access_token', 'token', 'secret', 'ApiKey', 'apiKey'])(
  'a log line has no %s, at any of three levels',
  (name) => {
    let text = ''
    const output = new Writable({
      write(chunk, _encoding, done) {
        text += chunk
        done()
      },
    })
    const log = createLogger({ name: 'things', level: 'info' }, output)
    const secret = { [name]: 'hidden' }

    log.info({ ...secret, headers: secret, err: { request: secret } }, 'sent')

    expect(text).toContain('"msg":"sent"')
    expect(text.match(/\[redacted\]/g)).toHaveLength(3)
    expect(text).not.toContain('hidden')
  },
)
