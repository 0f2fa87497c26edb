import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { FileClient } from '../src/file-client.ts'
import { ProblemError, pages, unwrap } from '../src/responses.ts'

/** A client that records its requests; each gets this response. */
function createClient(response: () => Response) {
  const requests: { url: string; headers: Headers; body: string }[] = []
  const client = new FileClient({
    baseUrl: 'http://127.0.0.1',
    credentials: { token: 'ss_token' },
    fetch: async (request) => {
      requests.push({ url: request.url, headers: request.headers, body: await request.text() })
      return response()
    },
  })
  return { client, requests }
}

test('an upload encodes each segment of its path, and reports its progress up to the size', async () => {
  const { client, requests } = createClient(() => Response.json({ path: 'a b/ü?.txt' }))
  const progress: [number, number][] = []

  await client.upload('a b/ü?.txt', new Blob(['content']), {
    onProgress: (sent, total) => progress.push([sent, total]),
  })

  const [request] = requests
  expect(request?.url).toBe('http://127.0.0.1/api/files/a%20b/%C3%BC%3F.txt')
  expect(request?.body).toBe('content')
  expect(progress.at(-1)).toEqual([7, 7])
})

test('paths of other operations keep their slashes', async () => {
  const { client, requests } = createClient(() => new Response(null, { status: 204 }))

  await client.api.DELETE('/api/files/{path}', { params: { path: { path: 'a/b c' } } })

  expect(requests[0]?.url).toBe('http://127.0.0.1/api/files/a/b%20c')
})

test.each(['../a', 'a/./b', 'a/..'])('the path %s, which no URL can carry, is not sent', async (path) => {
  const { client, requests } = createClient(() => Response.json({ path: 'b' }))

  const deleting = unwrap(client.api.DELETE('/api/files/{path}', { params: { path: { path } } }))

  await expect(deleting).rejects.toMatchObject({ code: 'invalid_path', status: 400 })
  await expect(client.upload(path, new Blob(['content']))).rejects.toMatchObject({ code: 'invalid_path' })
  expect(requests).toEqual([])
})

test('a rejected upload fails with the code of the service', async () => {
  const problem = { status: 507, code: 'quota_exceeded', detail: 'Quota exceeded' }
  const { client } = createClient(() => Response.json(problem, { status: 507 }))

  const uploading = client.upload('a', new Blob(['content']))

  await expect(uploading).rejects.toMatchObject({ code: 'quota_exceeded', status: 507 })
})

test('a failure tells when to try again, and its faults as data', async () => {
  const errors = [{ path: '/query/page', message: 'must be between 1 and 1000000000' }]
  const problem = { status: 429, code: 'too_many_requests', detail: 'Too many', errors }
  const headers = { 'retry-after': '300' }
  const { client } = createClient(() => Response.json(problem, { status: 429, headers }))

  const failures = await Promise.all([
    unwrap(client.api.GET('/api/files')).catch((error) => error),
    client.upload('a', new Blob(['content'])).catch((error) => error),
  ])

  for (const failure of failures) expect(failure).toMatchObject({ status: 429, retryAfter: 300, errors })
})

test.each([413, 502])('a %i that a proxy answers with a page is described by its status', async (status) => {
  const headers = { 'content-type': 'text/html', 'retry-after': '300' }
  const { client } = createClient(() => new Response('<html></html>', { status, headers }))

  const failures = await Promise.all([
    unwrap(client.api.GET('/api/files')).catch((error) => error),
    client.upload('a', new Blob(['content'])).catch((error) => error),
  ])

  for (const failure of failures) {
    expect(failure).toMatchObject({ status, code: 'unexpected_response', retryAfter: 300 })
    expect(failure.message).toBe(`The server responded with ${status}`)
  }
})

test.each([
  ['/size: must be a number', '/size: must be a number'],
  ['Two faults', 'Two faults\n  /size: must be a number'],
])('a fault that the detail has is said once: %s', async (detail, message) => {
  const errors = [{ path: '/size', message: 'must be a number' }]
  const problem = { status: 400, code: 'validation_failed', detail, errors }

  const failure = await ProblemError.from(Response.json(problem, { status: 400 }))

  expect([failure.message, failure.errors]).toEqual([message, errors])
})

test('pages are read from the first to the last by their positions', async () => {
  const read: unknown[] = []
  const ends = ['p1', 'p2', null]
  const all = pages(async (position) => ({ next: ends[read.push(position) - 1] ?? null }))

  const found: unknown[] = []
  for await (const { next } of all) found.push(next)

  expect(found).toEqual(ends)
  expect(read).toEqual([{}, { after: 'p1' }, { after: 'p2' }])
})

test('a large upload continues where the service says after each failure', async () => {
  const bytes = randomBytes(40_000_000)
  const service = new UploadService(['lost', 'cut', 'unavailable', 'locked'])
  const client = clientOf(service)
  const progress: number[] = []

  const record = await client.upload('a/ü.bin', new Blob([bytes]), {
    onProgress: (sent) => progress.push(sent),
  })

  expect(record).toMatchObject({ path: 'a/ü.bin' })
  expect(Buffer.concat(service.chunks).equals(bytes)).toBe(true)
  expect(Math.max(...service.chunks.map(({ length }) => length))).toBeLessThanOrEqual(16_777_216)
  expect(service.metadata).toBe(`path ${btoa('a/Ã¼.bin')}`)
  expect([progress[0], progress.at(-1)]).toEqual([0, bytes.length])
  expect(service.failures).toEqual([])
})

test('a large upload that the service refuses is removed there, and fails with its code', async () => {
  const service = new UploadService(['refused'])
  const client = clientOf(service)

  const uploading = client.upload('a', new Blob([randomBytes(17_000_000)]))

  await expect(uploading).rejects.toMatchObject({ code: 'precondition_failed' })
  expect(service.requests.at(-1)).toBe('DELETE /api/uploads/1')
})

const clientOf = (service: UploadService) =>
  new FileClient({
    baseUrl: 'http://127.0.0.1',
    credentials: { token: 'ss_token' },
    fetch: (request) => service.respond(request),
    sleep: async () => undefined,
  })

type Failure = 'lost' | 'cut' | 'unavailable' | 'locked' | 'refused'

/** The service's side of one resumable upload, whose first PATCHes fail in these ways. */
class UploadService {
  readonly chunks: Buffer[] = []
  readonly requests: string[] = []
  readonly failures: Failure[]
  metadata = ''
  #length = 0

  constructor(failures: Failure[]) {
    this.failures = failures
  }

  async respond(request: Request): Promise<Response> {
    const { method, headers } = request
    const { pathname } = new URL(request.url)
    this.requests.push(`${method} ${pathname}`)
    if (method === 'GET') return Response.json({ path: 'a/ü.bin' })
    if (method === 'DELETE') return new Response(null, { status: 204 })
    if (method === 'POST') {
      this.#length = Number(headers.get('upload-length'))
      this.metadata = headers.get('upload-metadata') ?? ''
      return new Response(null, { status: 201, headers: { location: '/api/uploads/1' } })
    }
    if (method === 'PATCH') {
      const failure = this.failures.shift()
      if (failure === 'refused') return problem(412, 'precondition_failed')
      if (failure === 'unavailable') return problem(503, 'unavailable')
      if (failure === 'locked') return problem(423, 'upload_locked')
      expect(Number(headers.get('upload-offset'))).toBe(this.#size)
      const body = Buffer.from(await request.arrayBuffer())
      this.chunks.push(failure === 'cut' ? body.subarray(0, body.length / 2) : body)
      if (failure) throw new TypeError('fetch failed')
    }
    const isStored = this.#size === this.#length
    const told = { 'upload-offset': String(this.#size) }
    return new Response(null, {
      status: method === 'HEAD' ? 200 : 204,
      headers: isStored ? { ...told, 'content-location': '/api/files/a' } : told,
    })
  }

  get #size() {
    return this.chunks.reduce((sum, { length }) => sum + length, 0)
  }
}

const problem = (status: number, code: string) => Response.json({ status, code, detail: code }, { status })
