import { describe, expect, test } from 'vitest'
import { boundary, filesBelow, start as startStatic } from '../../packages/static-service/test/support/start.ts'
import { leaksIn } from './leaks.ts'
import { answersIn, exchange, names, shareTarget } from './start.ts'

const script = '<script>alert(1)</script>'

/** The raw response to a GET with these headers, without parts that differ each time. */
async function get(port: number, target: string, headers: string[] = []): Promise<string> {
  const lines = ['Host: a', 'x-request-id: same', 'Connection: close', ...headers]
  const text = await exchange(port, `GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  return text.replace(/\r\ndate: [^\r]*/i, '').replace(/"uptime_seconds":\d+/, '')
}

describe.each(names)('%s', (name) => {
  const target = shareTarget(name)

  test('responses do not depend on headers outside the cache key', async () => {
    const headers = [
      'X-Forwarded-Host: evil.example',
      'X-Forwarded-Proto: evil',
      'X-Forwarded-Prefix: /evil',
      'X-Forwarded-For: 6.6.6.6',
      'Forwarded: host=evil.example;for=6.6.6.6',
      'X-Original-URL: /evil',
      'X-Rewrite-URL: /evil',
      'X-HTTP-Method-Override: DELETE',
      'Origin: https://evil.example',
      'Referer: https://evil.example/',
    ]
    const targets = ['/health', '/openapi.json', '/docs', '/docs/start.js', '/static/a.txt', '/nothing', '/api/auth/me']

    for (const path of targets) {
      const changed = await get(target().port, path, headers)
      expect(changed).toBe(await get(target().port, path))
      expect(changed).not.toContain('evil')
    }
  })

  test('client input cannot forge a log line', async () => {
    const forged = '{"level":60,"msg":"forged"}'
    const body = JSON.stringify({ username: `\n${forged}\r\n`, password: `x\n${forged}` })
    const bytes = [
      `GET /x%0a${encodeURIComponent(forged)}%0d%0ay HTTP/1.1\r\nhost: a\r\nuser-agent: ${forged}\r\n\r\n`,
      `GET /x?y=%0a${encodeURIComponent(forged)} HTTP/1.1\r\nhost: a\r\nx-request-id: ${forged}\r\n\r\n`,
      `POST /api/auth/login HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    ]

    const answers = answersIn(await exchange(target().port, bytes.join('')))

    expect(answers.map(({ status }) => status)).toEqual([404, 404, 401])
    await expect
      .poll(() =>
        target()
          .lines()
          .filter(({ status }) => status === 401),
      )
      .not.toEqual([])
    expect(
      target()
        .lines()
        .filter(({ msg, level }) => msg === 'forged' || level === 60 || level === 'fatal'),
    ).toEqual([])
  })

  test('no response renders client input as a page', async () => {
    const token = await target().tokenOf('admin')
    const paths = ['/', '/api/', '/api/domains/', '/api/files/', '/static/', '/docs/'].flatMap((path) => [
      `${path}${encodeURIComponent(script)}`,
      `${path}?${encodeURIComponent(script)}=${encodeURIComponent(script)}`,
    ])

    const texts = await Promise.all(paths.map((path) => get(target().port, path, [`Authorization: Bearer ${token}`])))

    // / and /docs/ redirect, without a body.
    const types = texts
      .flatMap(answersIn)
      .filter(({ status }) => status !== 302 && status !== 308)
      .map(({ type }) => type?.split(';')[0])
    expect(types.filter((type) => !/^application\/(?:problem\+)?json$/.test(type ?? ''))).toEqual([])
    expect(texts.filter((text) => !/x-content-type-options: nosniff/i.test(text))).toEqual([])
    expect(texts.flatMap(leaksIn)).toEqual([])
  })
})

test('uploaded content never executes: not as page, image, name or text', async () => {
  await using service = await startStatic()
  const pages = ['a.html', 'a.svg', 'a.xml', 'a.xhtml', 'a.htm', 'a.shtml', 'a.mht', 'a.xsl', 'a.rdf']
  const others = ['a.js', 'a.txt', 'a', 'a.unknown', 'a.pdf', 'a.csv', 'a.html.gz']
  const named = `${encodeURIComponent(script)}.html`
  for (const path of [...pages, ...others]) await service.put(path, `${'x'.repeat(2000)}${script}`)
  await service.put(`x/${script.replace('/', '')}"'.html`, script)
  await service.call('POST', '/api/versions', { json: { version: '1', changelog: script } })

  const active = await Promise.all(pages.map((path) => service.call('GET', `/static/${path}`)))
  const passive = await Promise.all(others.map((path) => service.call('GET', `/static/${path}`)))
  const described = await Promise.all(
    ['/api/files/', '/api/files/tree', '/api/versions', '/api/versions/current', `/static/${named}`].map((path) =>
      service.call('GET', path),
    ),
  )

  const isPage = (type: unknown) => /html|xml/.test(String(type))
  expect(
    active.filter(
      ({ headers }) => isPage(headers['content-type']) && !/^sandbox;/.test(String(headers['content-security-policy'])),
    ),
  ).toEqual([])
  expect(passive.filter(({ headers }) => isPage(headers['content-type']))).toEqual([])
  expect(
    described.filter(({ headers }) => !/^application\/(?:problem\+)?json/.test(String(headers['content-type']))),
  ).toEqual([])
  expect(
    [...active, ...passive, ...described].filter(({ headers }) => headers['x-content-type-options'] !== 'nosniff'),
  ).toEqual([])
})

describe('expensive multipart forms', () => {
  const part = (headers: string, content: string) => `--${boundary}\r\n${headers}\r\n\r\n${content}\r\n`
  const field = 'content-disposition: form-data; name="x"'
  const file = 'content-disposition: form-data; name="file"; filename="f"'
  const end = `--${boundary}--\r\n`

  test.each([
    ['20,000 fields', part(field, 'y').repeat(20_000) + end, [413]],
    ['20,000 files', part(file, 'y').repeat(20_000) + end, [413]],
    ['5,000 headers in a part', part(`${file}\r\n${'a: b\r\n'.repeat(5000)}a: b`, 'y') + end, [201, 400]],
    ['a header of 4 MB', part(`${file}; x="${'y'.repeat(4_000_000)}"`, 'y') + end, [201, 400]],
    ['a name of 100 KB', part(`content-disposition: form-data; name="${'y'.repeat(100_000)}"`, 'y') + end, [400]],
    ['a field of 4 MB', part(field.replace('"x"', '"path"'), 'y'.repeat(4_000_000)) + end, [400]],
    ['a million half boundaries', part(file, `\r\n--${boundary.slice(0, -1)}`.repeat(200_000)) + end, [201]],
    ['a form in a form', part('content-type: multipart/mixed; boundary=b', '--b\r\n\r\nx\r\n--b--') + end, [400]],
    ['a coding of its own', part(`${file}\r\ncontent-transfer-encoding: base64`, 'eA==') + end, [400]],
    ['a preamble and an epilogue', `${'x'.repeat(1e6)}\r\n${part(file, 'y')}${end}${'z'.repeat(1e6)}`, [201]],
  ])('%s', async (_what, body, statuses) => {
    await using service = await startStatic()
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }

    const answer = await service.call('POST', '/api/files/upload', { body, headers })
    const then = await service.put('a.txt', 'still here')

    expect(statuses).toContain(answer.status)
    expect(then.status).toBe(201)
    await expect.poll(() => filesBelow(`${service.dataDir}/tmp`)).toEqual([])
    expect(service.lines().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
  })

  test.each(['', '"', 'x'.repeat(5000), '--', ' ', 'a\tb', '\u00e9', '*', "'", 'b; boundary=c'])(
    'the boundary %j is taken as one, or refused',
    async (odd) => {
      await using service = await startStatic()
      const body = `--${odd}\r\n${file}\r\n\r\ny\r\n--${odd}--\r\n`

      const answer = await service.call('POST', '/api/files/upload', {
        body,
        headers: { 'content-type': `multipart/form-data; boundary=${odd}` },
      })

      expect([201, 400]).toContain(answer.status)
      await expect.poll(() => filesBelow(`${service.dataDir}/tmp`)).toEqual([])
    },
  )
})

test('rejected logins do not block other requests', async () => {
  await using service = await startStatic()
  await service.put('a.txt', 'hello')
  const flood = Array.from({ length: 200 }, (_, at) =>
    service.call('POST', '/api/auth/login', {
      user: 'nobody',
      json: { username: `user${at}`, password: 'not it' },
    }),
  )

  const served = await Promise.all(Array.from({ length: 50 }, () => service.call('GET', '/static/a.txt')))
  const refused = new Set((await Promise.all(flood)).map(({ status }) => status))

  expect(new Set(served.map(({ status }) => status))).toEqual(new Set([200]))
  expect([...refused].every((status) => [401, 429, 503].includes(status))).toBe(true)
})
