import type { FaultInput } from '@domains-and-files/registrar-sandbox'
import { expect } from 'vitest'
import type { Service } from './start.ts'

interface Options {
  /** The service, or the replicas, where the writes arrive. */
  services: readonly [Service, ...Service[]]
  count: number
  /** Faults that the batch meets. */
  faults?: FaultInput[]
  /** Each write waits when the next one is sent, so that they have this order in the batch. */
  isOrdered?: boolean
}

/**
 * Sends writes of one domain at once. The registrar answers the first read when all of them wait, so that they are one
 * batch however slow the machine. Needs a `REGISTRAR_TIMEOUT_MS` that is longer than that.
 */
export async function joinWrites<Result>(
  { services, count, faults = [], isOrdered = false }: Options,
  write: (n: number) => Promise<Result>,
): Promise<Result[]> {
  const [{ sandbox }] = services
  sandbox.fault({ kind: 'slow', ms: 600_000, command: 'namecheap.domains.dns.getHosts' })
  const countWaiting = async () => {
    const counts = await Promise.all(services.map((service) => service.countWaiting()))
    return counts.reduce((sum, waiting) => sum + waiting, 0)
  }
  const answers: Promise<Result>[] = []
  for (let n = 0; n < count; n++) {
    answers.push(write(n))
    if (isOrdered) await expect.poll(countWaiting, { interval: 5 }).toBe(n + 1)
  }
  await expect.poll(countWaiting).toBe(count)
  sandbox.clearFaults()
  sandbox.fault(...faults)
  return Promise.all(answers)
}
