import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { add, final, passing, startBefore, startZone } from '../support/faulty-answers.ts'
import type { Service } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const getHosts = 'namecheap.domains.dns.getHosts'

/** Ends the time limit of the first call once the registrar has it, so that a slow machine misses no other limit. */
async function expireFirstCall({ sandbox }: Service) {
  const limit = new AbortController()
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(limit.signal)
  onTestFinished(() => timeout.mockRestore())
  await expect.poll(() => sandbox.calls.length).toBe(1)
  limit.abort(new DOMException('The time is over', 'TimeoutError'))
}

describe('a read whose answer is', () => {
  test.each(passing)('%s is repeated', async (_name, fault) => {
    await using service = await startZone()
    service.sandbox.fault({ ...fault, command: getHosts })

    const read = service.call('GET', hosts)
    if (fault.kind === 'slow' || fault.kind === 'hang') await expireFirstCall(service)
    const { status, body } = await read

    expect([status, body.hosts?.length]).toEqual([200, 4])
    expect(service.commands()).toEqual(['dns.gethosts', 'dns.gethosts'])
  })

  test.each(passing)(
    '%s every time fails with its own code, and no write follows',
    async (_name, fault, status, code) => {
      await using service = await startBefore(fault)
      const before = service.live()
      service.sandbox.fault({ ...fault, command: getHosts, times: 0 })

      const read = await service.call('GET', hosts)
      const written = await add(service)

      expect([read.status, read.body.code]).toEqual([status, code])
      // The fifth failure in a row opens the circuit, which may be in the middle of the second request.
      expect([code, 'registrar_unavailable']).toContain(written.body.code)
      expect(service.commands()).not.toContain('dns.sethosts')
      expect(service.live()).toEqual(before)
    },
  )

  test.each(final)('%s fails at once, and no write follows', async (_name, fault, status, code) => {
    await using service = await startZone()
    service.sandbox.fault({ ...fault, command: getHosts, times: 0 })

    const written = await add(service)

    expect([written.status, written.body.code]).toEqual([status, code])
    expect(service.commands()).toEqual(['dns.gethosts'])
  })

  test('truncated at any byte causes no write', async () => {
    await using service = await startZone()
    const before = service.live()
    for (const at of [0, 40, 400, 800, 1200]) {
      service.sandbox.fault({ kind: 'cut', framing: 'close', at, command: getHosts, times: 3 })
      const { status } = await service.call('PUT', hosts, { body: { hosts: [] } })
      expect(status).toBe(502)
      service.sandbox.clearFaults()
      // Something that succeeds, so that the circuit stays closed.
      expect(
        (await service.call('GET', '/api/domains', { headers: { 'cache-control': 'no-cache' } }))
          .status,
      ).toBe(200)
    }

    expect(service.commands()).not.toContain('dns.sethosts')
    expect(service.live()).toEqual(before)
  })
})
