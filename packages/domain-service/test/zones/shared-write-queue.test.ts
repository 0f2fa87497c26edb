import { expect, test } from 'vitest'
import { joinWrites } from '../support/join-writes.ts'
import { startReplicas } from '../support/replicas.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('a hundred adds of one domain at three replicas are all done, in at most eight calls', async () => {
  await using set = await startReplicas(3, { env: { REGISTRAR_TIMEOUT_MS: '120000' } })
  const { replicas } = set
  const [first] = replicas

  const answers = await joinWrites({ services: replicas, count: 100 }, (n) =>
    (replicas[n % 3] ?? first).call('POST', `${hosts}/A`, {
      body: { name: `r${n}`, address: '192.0.2.9' },
    }),
  )

  expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([201]))
  expect(first.live()).toHaveLength(101)
  expect(first.commands().length).toBeLessThanOrEqual(8)
})
