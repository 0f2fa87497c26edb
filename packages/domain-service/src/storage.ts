import { join } from 'node:path'
import type { Auth } from '@domains-and-files/auth'
import type { Clock, Logger, Metrics } from '@domains-and-files/http'
import { openDataDir, type Postgres, type Sql, SqliteSql } from '@domains-and-files/persistence'
import type { CallBudget } from './budget/call-budget.ts'
import { CallQuota } from './budget/call-quota.ts'
import { LocalBudget } from './budget/local-budget.ts'
import type { Config } from './config.ts'
import type { DomainList } from './domain-list/domain-list.ts'
import { DomainListStore } from './domain-list/list-store.ts'
import { ChallengeStore } from './ledger/challenge-store.ts'
import { GivenZones } from './ledger/given-zones.ts'
import { HostUpdates } from './ledger/host-updates.ts'
import { Ledger, type LedgerOptions } from './ledger/ledger.ts'
import { databaseName, migrations } from './ledger/schema.ts'
import type { RegistrarClient, ResponseCache } from './registrar/client.ts'
import type { DomainInfo, Nameservers } from './registrar/responses.ts'
import type { Replicas } from './zones/zone-dependencies.ts'
import type { ZoneSweep } from './zones/zone-watch.ts'
import type { ZoneWriter } from './zones/zone-writer.ts'

/** Where the service keeps its state, alone or together with other replicas. */
export interface Storage {
  database: LedgerOptions['sql']
  /** The same database where replicas share it. */
  postgres?: Postgres
  budget: CallBudget
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
    Pick<Stores, 'ledger' | 'challenges' | 'givenZones' | 'hostUpdates'> {
  auth: Auth
  registrar: RegistrarClient
  domains: DomainList
  infos: ResponseCache<DomainInfo>
  nameservers: ResponseCache<Nameservers>
  outbox: Sql
  zones: ZoneWriter
  sweep: ZoneSweep
}

export const accountName = ({ account }: Config) => `${account.url} ${account.userName}`

type Stores = Awaited<ReturnType<typeof openStores>>

/** The stores on the database of the service. */
export async function openStores({ database, budget, replicas }: Storage, { config, clock }: Surroundings) {
  // Without fsync: it would delay everything else, and a power cut loses what can be lost.
  const { unsynced = database } = database
  return {
    ledger: new Ledger({ sql: database, leases: replicas?.leases }),
    challenges: new ChallengeStore(database),
    givenZones: new GivenZones(unsynced),
    hostUpdates: new HostUpdates(unsynced),
    domainList: new DomainListStore(unsynced, accountName(config)),
    quota: await CallQuota.open({ limits: config.registrarRate, budget, clock }),
  }
}

/** SQLite in DATA_DIR, for one process. @throws {DataDirError} when another one uses it. */
export async function openEmbeddedStorage({ config, log, clock }: Surroundings): Promise<Storage> {
  const { dataDir } = config
  await using opened = new AsyncDisposableStack()
  opened.defer(await openDataDir(dataDir))
  const database = opened.use(new SqliteSql({ file: join(dataDir, databaseName), migrations, now: clock.now }))
  const onFailure = (error: unknown) => log.error({ err: error }, 'registrar calls not stored; counting in memory')
  const budget = await LocalBudget.open(database.unsynced, { account: accountName(config), clock, onFailure })
  opened.defer(() => budget.settle())
  await new GivenZones(database.unsynced)
    .forgetWrites()
    .catch((error: unknown) => log.error({ err: error }, 'unfinished writes not forgotten'))
  const owned = opened.move()
  return { database, budget, isActive: () => true, startTasks: (run) => run(), close: () => owned.disposeAsync() }
}
