import type { Caller } from '@domains-and-files/auth'
import type { Clock, Logger } from '@domains-and-files/http'
import type { Zone } from '../dns/zone.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AwaitedChanges } from '../ledger/replicas/awaited-changes.ts'
import type { Leases } from '../ledger/replicas/leases.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import type { ResponseCache } from '../registrar/response-cache.ts'

/** What every part of a zone write uses. */
export interface ZoneDependencies {
  registrar: RegistrarClient
  ledger: Ledger
  cache: Pick<ResponseCache<Zone>, 'put' | 'drop'>
  /** The caller with this id, with its present rights; undefined if it is gone. */
  findCaller: (id: string) => Promise<Caller | undefined>
  /** Whether a write that the registrar reports as done is read back. */
  verify: boolean
  /** Milliseconds after which a call to the registrar is given up. */
  timeoutMs: number
  /** Whether this process is the one that carries out asynchronous changes and checks zones. */
  isActive: () => boolean
  replicas?: Replicas | undefined
  clock: Clock
  log: Logger
  /** Late writes that were repaired, and changes made outside that this process has recorded. */
  counts: { lateWrites: number; outsideChanges: number }
}

/** Where several processes write zones. */
export interface Replicas {
  leases: Leases
  awaited: AwaitedChanges
  /** Whether `onChange` is called when other replicas change the queue. */
  isListening: boolean
  /** Called when a change of this domain was queued or has ended, or its lease was released; undefined: of any domain. */
  onChange: (domain: string | undefined) => void
}
