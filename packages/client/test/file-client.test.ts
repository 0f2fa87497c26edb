import { expect, test } from 'vitest'
import { FileClient } from '../src/file-client.ts'

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
    onlyIfNew: true,
    onProgress: (sent, total) => progress.push([sent, total]),
  })

  const [request] = requests
  expect(request?.url).toBe('http://127.0.0.1/api/files/a%20b/%C3%BC%3F.txt')
  expect(request?.body).toBe('content')
  expect(request?.headers.get('if-none-match')).toBe('*')
  expect(progress.at(-1)).toEqual([7, 7])
})

test('paths of other operations keep their slashes', async () => {
  const { client, requests } = createClient(() => new Response(null, { status: 204 }))

  await client.api.DELETE('/api/files/{path}', { params: { path: { path: 'a/b c' } } })

  expect(requests[0]?.url).toBe('http://127.0.0.1/api/files/a/b%20c')
})

test('a rejected upload fails with the code of the service', async () => {
  const problem = { status: 507, code: 'quota_exceeded', detail: 'Quota exceeded' }
  const { client } = createClient(() => Response.json(problem, { status: 507 }))

  const uploading = client.upload('a', new Blob(['content']))

  await expect(uploading).rejects.toMatchObject({ code: 'quota_exceeded', status: 507 })
})
