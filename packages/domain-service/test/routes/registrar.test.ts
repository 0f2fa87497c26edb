import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { driveClock } from '../support/drive-clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { apiKey, start } from '../support/start.ts'

const named = expect.stringMatching(/^127\.0\.0\.1:\d+$/)

test('health and the registrar page say which registrar is called, and events when it fails', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })

  const health = await service.call('GET', '/health')
  const state = await service.call('GET', '/api/registrar')
  service.sandbox.fault({ kind: 'reset', times: 0 })
  const read = () => driveClock(clock, service, service.call('GET', '/api/domains'))
  for (let code: string | undefined; code !== 'registrar_unavailable'; ) code = (await read()).body.code
  const failing = await service.call('GET', '/health')
  service.sandbox.clearFaults()
  await clock.advance(5_000)
  await read()
  const recovered = await service.call('GET', '/health')
  const types = async () => {
    const query = 'types=registrar.failing,registrar.recovered'
    const { text } = await service.call('GET', `/api/events?${query}`)
    return JSON.parse(text).events.map(({ type }: { type: string }) => type)
  }

  await expect.poll(types).toEqual(['registrar.failing', 'registrar.recovered'])
  expect(health.body).toMatchObject({ checks: { registrar: { status: 'ok', registrar: named } } })
  expect(state.body).toMatchObject({ registrar: named })
  expect([failing, recovered].map(({ body }) => body.status)).toEqual(['degraded', 'ok'])
})

test('a key and a metrics token that are replaced in their files count without a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'secrets-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const files = { key: join(folder, 'key'), token: join(folder, 'token') }
  writeFileSync(files.key, 'the key of last year')
  writeFileSync(files.token, 'the token of last year')
  await using service = await start({
    env: {
      REGISTRAR_API_KEY: '',
      REGISTRAR_API_KEY_FILE: files.key,
      METRICS_TOKEN: '',
      METRICS_TOKEN_FILE: files.token,
    },
  })
  const read = () => service.call('GET', '/api/domains/example.com/dns/hosts')
  const scrape = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    return (await fetch(`${service.url}/metrics`, { headers })).status
  }

  const before = [await read(), await service.call('GET', '/health')]
  const old = await scrape('the token of last year')
  writeFileSync(files.key, `${apiKey}\n`)
  writeFileSync(files.token, 'the new one\n')
  const after = [await read(), await service.call('GET', '/health')]

  expect(before[0]?.body).toMatchObject({ code: 'registrar_auth' })
  expect(before[1]?.body).toMatchObject({ checks: { registrar: { status: 'degraded' } } })
  expect(after[0]?.status).toBe(200)
  expect(after[1]?.body).toMatchObject({ checks: { registrar: { status: 'ok' } } })
  expect([old, await scrape('the new one')]).toEqual([200, 200])
  expect(await scrape('the token of last year')).toBe(401)
})
