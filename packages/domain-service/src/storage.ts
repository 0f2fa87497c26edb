import { join } from 'node:path'
import type { Auth } from '@domains-and-files/auth'
import type { Clock, Logger, Metrics } from '@domains-and-files/http'
import { openDataDir, type Postgres, type Sql, SqliteSql } from '@domains-and-files/persistence'
import { CallQuota } from './budget/call-quota.ts'
import { LocalBudget } from './budget/local-budget.ts'
import type { Config } from './config.ts'
import type { DomainList } from './domain-list/domain-list.ts'
import { DomainListStore } from './domain-list/list-store.ts'
import { ChallengeStore } from './ledger/challenge-store.ts'
import { GivenZones } from './ledger/given-zones.ts'
import { HostUpdates } from './ledger/host-updates.ts'
import { Ledger } from './ledger/ledger.ts'
import type { Leases } from './ledger/replicas/leases.ts'
import { databaseName, migrations } from './ledger/schema.ts'
import type { RegistrarClient, ResponseCache } from './registrar/client.ts'
import type { DomainInfo, Nameservers } from './registrar/responses.ts'
import type { Replicas } from './zones/zone-dependencies.ts'
import type { ZoneSweep } from './zones/zone-watch.ts'
import type { ZoneWriter } from './zones/zone-writer.ts'

/** Where the service keeps its state, alone or together with other replicas. */
export interface Storage {
  ledger: Ledger
  challenges: ChallengeStore
  givenZones: GivenZones
  hostUpdates: HostUpdates
  database: Sql
  /** The same database where replicas share it. */
  postgres?: Postgres
  quota: CallQuota
  domainList: { store: DomainListStore; leases?: Leases }
  replicas?: Replicas
  /** Whether this process runs the background tasks. */
  isActive(): boolean
  /** Runs the background tasks: once, or among replicas from time to time while this one is active. */
  startTasks(run: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

/** What the parts of the service have in common. */
export interface Surroundings {
  config: Config
  log: Logger
  clock: Clock
  metrics: Metrics | undefined
}

/** The parts of the service that routes are made of. */
export interface Dependencies
  extends Surroundings,
    Pick<Storage, 'ledger' | 'challenges' | 'givenZones' | 'hostUpdates'> {
  auth: Auth
  registrar: RegistrarClient
  domains: DomainList
  infos: ResponseCache<DomainInfo>
  nameservers: ResponseCache<Nameservers>
  outbox: Sql
  zones: ZoneWriter
  sweep: ZoneSweep
}

/** SQLite in DATA_DIR, for one process. @throws {DataDirError} when another one uses it. */
export async function openEmbeddedStorage({ config, log, clock }: Surroundings): Promise<Storage> {
  const { dataDir, registrarRate: limits, account } = config
  await using opened = new AsyncDisposableStack()
  opened.defer(await openDataDir(dataDir))
  const file = join(dataDir, databaseName)
  const database = new SqliteSql({ file, migrations, now: clock.now })
  opened.defer(() => database.close())
  // No fsync per call: it would delay everything else, and a call lost in a power cut is at most one call too many.
  const counter = database.unsynced
  const accountName = `${account.url} ${account.userName}`
  const onFailure = (error: unknown) => log.error({ err: error }, 'registrar calls not stored; counting in memory')
  const budget = await LocalBudget.open(counter, { account: accountName, clock, onFailure })
  opened.defer(() => budget.settle())
  const givenZones = new GivenZones(counter)
  await givenZones
    .forgetWrites()
    .catch((error: unknown) => log.error({ err: error }, 'unfinished writes not forgotten'))
  const quota = await CallQuota.open({ limits, budget, clock })
  const owned = opened.move()
  return {
    database,
    givenZones,
    quota,
    ledger: new Ledger({ sql: database }),
    challenges: new ChallengeStore(database),
    hostUpdates: new HostUpdates(counter),
    domainList: { store: new DomainListStore(counter, accountName) },
    isActive: () => true,
    startTasks: (run) => run(),
    close: () => owned.disposeAsync(),
  }
}
