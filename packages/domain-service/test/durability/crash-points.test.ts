import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSandbox } from '@domains-and-files/registrar-sandbox'
import { expect, test } from 'vitest'
import { killPoints } from '../support/kill-at.ts'
import { ServiceProcess } from '../support/service-process.ts'
import { apiKey } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const history = '/api/domains/example.com/dns/history'
const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'
const rows = Array.from({ length: 5 }, (_, n) => ({
  name: `r${n}`,
  type: 'A',
  address: `192.0.2.${n + 1}`,
}))

interface Entry {
  id: number
  status: string
  changes: { removed: { name: string }[] }
}

async function entriesOf(service: ServiceProcess): Promise<Entry[]> {
  const { status, body } = await service.insist('GET', history)
  if (status !== 200) throw new Error(`the history is answered with ${status}`)
  // The test reads what this service answers.
  return (body as { history: Entry[] }).history
}

test.each(killPoints)(
  'after SIGKILL at %s nothing that was removed is lost, and every send has an outcome',
  async (point) => {
    await using sandbox = await startSandbox({
      apiUser: 'tester',
      apiKey,
      rate: 'off',
      domains: [{ name: 'example.com', hosts: rows }],
    })
    const dataDir = mkdtempSync(join(tmpdir(), 'crash-'))
    const service = await ServiceProcess.create({
      DATA_DIR: dataDir,
      REGISTRAR_URL: sandbox.url,
      REGISTRAR_RATE: '100000/minute',
    })
    try {
      await service.start(`${point}:1`)
      const put = await service.insist('PUT', hosts, {
        hosts: [{ name: 'r0', type: 'A', address: '192.0.2.1' }],
      })
      await service.stop('SIGKILL')
      await service.start()
      const isSent = sandbox.calls.some(({ command }) => command.endsWith('sethosts'))
      const live = sandbox.zone('example.com').hosts.map(({ name }) => name)

      expect([put.status, service.kills]).toEqual([0, 1])
      await expect.poll(() => entriesOf(service)).not.toContainEqual(expect.objectContaining({ status: 'sending' }))
      const [entry, ...others] = await entriesOf(service)
      expect(others).toEqual([])
      if (live.length === 1) {
        expect(entry).toMatchObject({ status: 'confirmed' })
        expect(entry?.changes.removed.map(({ name }) => name)).toEqual(['r1', 'r2', 'r3', 'r4'])
        const restored = await service.insist('POST', `${history}/${entry?.id}/restore`)
        expect(restored.status).toBe(200)
        expect(sandbox.zone('example.com').hosts).toHaveLength(5)
      } else {
        expect(live).toHaveLength(5)
        expect(entry?.status).not.toBe('confirmed')
        if (isSent) expect(entry).toBeDefined()
      }
    } finally {
      await service.stop()
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
)

test('SIGTERM while the zone cannot be read back ends the service in time, and the next start tells the outcome', async () => {
  await using sandbox = await startSandbox({
    apiUser: 'tester',
    apiKey,
    rate: 'off',
    domains: [{ name: 'example.com', hosts: rows }],
  })
  const dataDir = mkdtempSync(join(tmpdir(), 'crash-'))
  const service = await ServiceProcess.create({
    DATA_DIR: dataDir,
    REGISTRAR_URL: sandbox.url,
    REGISTRAR_RATE: '100000/minute',
  })
  try {
    await service.start()
    // Its answer waits until the next read hangs: on a busy machine the zone is read several times before it is sent.
    sandbox.fault({ kind: 'slow', command: setHosts, when: 'after', ms: 600_000 })
    const put = service.insist('PUT', hosts, { hosts: [] })
    const countCalls = (name: string) => sandbox.calls.filter(({ command }) => command === name.toLowerCase()).length
    await expect.poll(() => countCalls(setHosts)).toBe(1)
    const reads = countCalls(getHosts)
    sandbox.clearFaults()
    sandbox.fault({ kind: 'hang', command: getHosts, times: 0 })
    await expect.poll(() => countCalls(getHosts)).toBe(reads + 1)
    await service.stop('SIGTERM')
    sandbox.clearFaults()
    await service.start()

    expect((await put).status).toBe(0)
    await expect
      .poll(() => entriesOf(service))
      .toMatchObject([{ status: 'confirmed', changes: { removed: expect.any(Array) } }])
  } finally {
    await service.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
