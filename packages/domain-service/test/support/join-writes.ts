import type { FaultInput } from '@domains-and-files/registrar-sandbox'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Service } from './start.ts'

interface Options {
  /** The service, or the replicas, where the writes arrive. */
  services: readonly [Service, ...Service[]]
  count: number
  /** Faults that the batch meets. */
  faults?: FaultInput[]
  /** Each write is in the ledger when the next one is sent, so that they have this order in the batch. */
  isOrdered?: boolean
}

const Changes = z.object({ pagination: z.object({ total_items: z.number() }) })

/** How many changes the ledger has; not the writes that wait: they are counted before it has given them their places. */
export async function countChanges(service: Service): Promise<number> {
  const { body } = await service.call('GET', '/api/changes?page_size=1')
  return Changes.parse(body).pagination.total_items
}

/**
 * Sends writes of one domain at once. The registrar answers the first read when all of them wait, so that they are one
 * batch however slow the machine. Needs a `REGISTRAR_TIMEOUT_MS` that is longer than that.
 */
export async function joinWrites<Result>(
  { services, count, faults = [], isOrdered = false }: Options,
  write: (n: number) => Promise<Result>,
): Promise<Result[]> {
  const [service] = services
  const { sandbox } = service
  sandbox.fault({ kind: 'slow', ms: 600_000, command: 'namecheap.domains.dns.getHosts' })
  const countAccepted = () => countChanges(service)
  const accepted = await countAccepted()
  const answers: Promise<Result>[] = []
  for (let n = 0; n < count; n++) {
    answers.push(write(n))
    if (isOrdered) await expect.poll(countAccepted, { interval: 5 }).toBe(accepted + n + 1)
  }
  await expect.poll(countAccepted).toBe(accepted + count)
  sandbox.clearFaults()
  sandbox.fault(...faults)
  return Promise.all(answers)
}
