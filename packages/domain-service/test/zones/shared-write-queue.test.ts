import { expect, test } from 'vitest'
import { startReplicas } from '../support/replicas.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('a hundred adds of one domain at three replicas are all done, in at most eight calls', async () => {
  await using set = await startReplicas(3, { env: { REGISTRAR_TIMEOUT_MS: '60000' } })
  const { replicas } = set
  const [first] = replicas

  first.sandbox.fault({ kind: 'slow', ms: 60_000, command: 'namecheap.domains.dns.getHosts' })

  const add = (n: number) =>
    replicas[n % 3]?.call('POST', `${hosts}/A`, {
      body: { name: `r${n}`, address: '192.0.2.9' },
    })
  const countWaiting = async () => {
    const counts = await Promise.all(replicas.map((replica) => replica.countWaiting()))
    return counts.reduce((sum, count) => sum + count, 0)
  }
  const firstAdd = add(0)
  await expect.poll(first.commands).toEqual(['dns.gethosts'])
  const adding = [firstAdd, ...Array.from({ length: 99 }, (_, n) => add(n + 1))]
  // The registrar answers the first when all the others are there, however slow the machine.
  await expect.poll(countWaiting).toBe(100)
  first.sandbox.clearFaults()
  const answers = await Promise.all(adding)

  expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([201]))
  expect(first.live()).toHaveLength(101)
  expect(first.commands().length).toBeLessThanOrEqual(8)
})
