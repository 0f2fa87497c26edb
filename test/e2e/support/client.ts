import assert from 'node:assert/strict'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'

export interface Call {
  method?: string
  headers?: Record<string, string>
  json?: unknown
  form?: FormData
  /** Expected status; default 200. */
  status?: number
}

/** A client of one service, with its token. */
export class Client {
  readonly #base: string
  #token: string | undefined

  constructor(port: number) {
    this.#base = `http://127.0.0.1:${port}`
  }

  get token() {
    return this.#token ?? ''
  }

  async logIn(username: string, password: string): Promise<void> {
    const { access_token: token } = await this.json('/api/auth/login', {
      json: { username, password },
    })
    this.#token = String(token)
  }

  /** @throws if the response has another status than expected. */
  async call(path: string, call: Call = {}): Promise<Response> {
    const { method, json, form, headers, status = 200 } = call
    const body = json === undefined ? form : JSON.stringify(json)
    const send = () =>
      fetch(this.#base + path, {
        method: method ?? (body ? 'POST' : 'GET'),
        headers: {
          ...(this.#token ? { authorization: `Bearer ${this.#token}` } : {}),
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
      })
    let answer = await send()
    // An overloaded machine sheds requests; a client comes back.
    for (let left = 30; left > 0 && answer.status === 503 && status !== 503; left -= 1) {
      await wait(1000 * Number(answer.headers.get('retry-after')))
      answer = await send()
    }
    if (answer.status !== status) {
      assert.fail(`${method ?? ''} ${path}: ${answer.status}, not ${status}: ${await answer.text()}`)
    }
    return answer
  }

  /** The response's JSON object. */
  async json(path: string, call: Call = {}): Promise<Record<string, unknown>> {
    const parsed: unknown = await (await this.call(path, call)).json()
    assert.ok(parsed && typeof parsed === 'object')
    return { ...parsed }
  }

  /** Uploads `size` zero bytes in bounded memory. */
  async uploadZeros(path: string, size: number) {
    const boundary = 'boundary-of-trials'
    const head = Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="path"\r\n\r\n${path}\r\n` +
        `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n`,
    )
    const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
    const asked = request(`${this.#base}/api/files/upload`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.token}`,
        'content-type': `multipart/form-data; boundary=${boundary}`,
        'content-length': head.length + size + tail.length,
      },
    })
    const answered = Promise.withResolvers<{ status: number; text: string }>()
    asked.on('error', answered.reject)
    asked.on('response', async (response) => {
      const text = (await buffer(response)).toString()
      answered.resolve({ status: response.statusCode ?? 0, text })
    })
    const chunk = Buffer.alloc(1024 * 1024)
    asked.write(head)
    for (let left = size; left > 0 && !asked.destroyed; left -= chunk.length) {
      const isTaken = asked.write(chunk.subarray(0, Math.min(left, chunk.length)))
      if (!isTaken) await Promise.race([new Promise((go) => asked.once('drain', go)), answered.promise])
    }
    asked.end(tail)
    return answered.promise
  }
}
