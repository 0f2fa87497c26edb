import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises'
import { allowsDomain, hasRole } from '@domains-and-files/auth'
import { delay, HttpError } from '@domains-and-files/http'
import type { Domain } from '../../dns/domain-name.ts'
import { rightsEnded } from '../../errors.ts'
import { isDatabaseAway, type QueuedChange } from '../../ledger/ledger.ts'
import type { WaitingClients } from '../waiting-clients.ts'
import { BatchRecorder, failed } from './batch-recorder.ts'
import { BatchCalls } from './current-zone.ts'
import { type BatchDependencies, WriteBatch } from './write-batch.ts'

interface Options extends BatchDependencies {
  clients: WaitingClients
  queue: {
    /**
     * Adds the writes that the ledger has queued. Returns the id up to which it has added all: later ones wait, so that
     * they overtake none.
     */
    pull(writes: QueuedChange[]): Promise<number>
    /** Called right before a zone is sent. @throws {HttpError} where this process may not write the domain any more. */
    checkLease(): void
  }
}

/** The calls of a batch: read, write, read-back. */
const batchCalls = 3

/** How long a batch without waiting clients may delay one with waiting clients. */
const maxBackgroundWaitMs = 2_000

const maxDebounceMs = 250
// Writes of other processes take longer to arrive. Less than the age of a read that a write may be based on.
const maxSharedDebounceMs = 450

/**
 * Carries out one batch with these writes, and those that are queued meanwhile, in the order in which they were accepted;
 * without any it only reads the zone, resolves its open sends and repairs a late write.
 * @returns undefined where no slots came free: writes with a waiting client were refused, the others stay queued. Else
 * why the ledger lacks an outcome, if it does.
 * @throws where the zone could not be read, or the ledger not be written.
 */
export async function runBatch(
  domain: Domain,
  writes: QueuedChange[],
  options: Options,
): Promise<Pick<BatchRecorder, 'failure'> | undefined> {
  const recorder = new BatchRecorder(options)
  try {
    using calls = await reserve(domain, writes, { ...options, recorder })
    if (!calls) return undefined
    const batch = new WriteBatch(options, { calls, recorder, domain: domain.name })
    await batch.read()
    const pulledTo = await gather(writes, options)
    const taken = writes.splice(0).filter(({ id }) => id <= pulledTo)
    const rechecked = taken.map((write) => recheck(write, { recorder, ...options }))
    await batch.run((await Promise.all(rechecked)).flat())
    return recorder
  } catch (error) {
    // An internal fault must not end the process, nor leave a client without an answer.
    if (!(error instanceof HttpError || isDatabaseAway(error)))
      options.log.error({ err: error, domain: domain.name }, 'batch failed')
    await recorder.end(writes.splice(0).map((write) => failed(write, error)))
    throw error
  }
}

async function reserve(
  domain: Domain,
  writes: QueuedChange[],
  { registrar, clock, queue, recorder }: Options & { recorder: BatchRecorder },
): Promise<BatchCalls | undefined> {
  const awaited = writes.filter(({ isAsync }) => !isAsync)
  const callers = [...new Set(awaited.map(({ request }) => request.callerId ?? request.by))]
  const priority = writes.length === 0 ? ('background' as const) : ('queued' as const)
  const background = { priority, maxWaitMs: maxBackgroundWaitMs }
  try {
    const slots = awaited.length > 0 ? { callers } : background
    const reservation = await registrar.quota.reserve(batchCalls, slots)
    return new BatchCalls({ registrar, clock, domain, queue }, reservation)
  } catch (error) {
    if (awaited.length === 0) await delay(clock, maxBackgroundWaitMs / 4)
    await recorder.end(awaited.map((write) => failed(write, error)))
    return undefined
  }
}

// Requests that arrived during the read join the batch, and so do those close behind them: registrar quota is scarcer
// than latency.
async function gather(writes: QueuedChange[], { queue, ledger }: Options): Promise<number> {
  const { isShared } = ledger // Other processes queue writes, too.
  let pulledTo = await queue.pull(writes)
  const latest = performance.now() + (isShared ? maxSharedDebounceMs : maxDebounceMs)
  const mayJoin = isShared || writes.length > 1
  for (let seen = 0; mayJoin && writes.length > seen && performance.now() < latest; ) {
    seen = writes.length
    await sleep(isShared ? 50 : 20)
    await nextIteration() // Lets Node first read requests that are ready at the sockets.
    pulledTo = await queue.pull(writes)
  }
  return pulledTo
}

// The rights of the author may have ended since an asynchronous change was accepted.
async function recheck(
  write: QueuedChange,
  { findCaller, recorder }: BatchDependencies & { recorder: BatchRecorder },
): Promise<QueuedChange[]> {
  const { request, isAsync } = write
  if (!isAsync || request.callerId === undefined) return [write]
  try {
    const caller = await findCaller(request.callerId)
    const mayWrite = caller && hasRole(caller, 'editor') && allowsDomain(caller, request.domain)
    const isApproved = !caller?.writes || request.approved !== undefined
    if (!mayWrite || !isApproved) throw rightsEnded()
    return [{ ...write, request: { ...request, recordLimits: caller.records } }]
  } catch (error) {
    await recorder.end([failed(write, error)])
    return []
  }
}
