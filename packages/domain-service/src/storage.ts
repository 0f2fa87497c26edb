import { join } from 'node:path'
import type { Auth } from '@domains-and-files/auth'
import type { Clock, Logger, Metrics } from '@domains-and-files/http'
import { openDataDir, type Postgres, type Sql, SqliteSql } from '@domains-and-files/persistence'
import type { CallBudget } from './budget/call-budget.ts'
import { CallQuota } from './budget/call-quota.ts'
import { LocalBudget } from './budget/local-budget.ts'
import type { Config } from './config.ts'
import { DomainList } from './domain-list/domain-list.ts'
import { DomainListStore } from './domain-list/list-store.ts'
import { ChallengeStore } from './ledger/challenge-store.ts'
import { GivenZones } from './ledger/given-zones.ts'
import { HostUpdates } from './ledger/host-updates.ts'
import { Ledger, type LedgerOptions } from './ledger/ledger.ts'
import { databaseName, migrations } from './ledger/schema.ts'
import { recordRegistrarEvent } from './ledger/stored-change.ts'
import { RegistrarClient, type RegistrarOptions } from './registrar/client.ts'
import { ResponseCache } from './registrar/response-cache.ts'
import type { DomainInfo, Nameservers } from './registrar/responses.ts'
import type { Replicas } from './zones/zone-dependencies.ts'
import { ZoneSweep } from './zones/zone-watch.ts'
import { ZoneWriter } from './zones/zone-writer.ts'

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
export type Dependencies = Surroundings & Registry & { auth: Auth; outbox: Sql }

export type Registry = Awaited<ReturnType<typeof openRegistry>>

export const accountName = ({ account }: Config) => `${account.url} ${account.userName}`

/** The stores on the database of the service. */
async function openStores({ database, budget, replicas }: Storage, { config, clock }: Surroundings) {
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

/** The stores, and the registrar client with the domain list and the zones on top of it. */
export async function openRegistry(
  storage: Storage,
  { findCaller }: Auth,
  { calls, ...surroundings }: Surroundings & Pick<RegistrarOptions, 'calls'>,
) {
  const { config, log, clock } = surroundings
  const { account, registrarTimeoutMs: timeoutMs, domainsTtlMs: ttlMs } = config
  const intervalMs = config.driftIntervalS * 1_000
  const stores = await openStores(storage, surroundings)
  const { ledger, quota, domainList: store } = stores
  const { isActive, replicas } = storage
  const onFailing = (isFailing: boolean) => {
    recordRegistrarEvent(storage.database, { registrar: account.registrar, isFailing }).catch((error) =>
      log.warn({ err: error }, 'event of the registrar not recorded'),
    )
  }
  const registrar = new RegistrarClient({ account, timeoutMs, quota, clock, log, calls, onFailing })
  const shared = { registrar, ledger, isActive, clock, log }
  const domains = await DomainList.open({ registrar, store, leases: replicas?.leases, ttlMs, clock, log })
  const zones = new ZoneWriter({ ...config, ...shared, timeoutMs, verify: config.verifyWrites, replicas, findCaller })
  const caching = registrar.cacheOptions(config.cacheTtlMs)
  const infos = new ResponseCache<DomainInfo>(caching)
  const nameservers = new ResponseCache<Nameservers>(caching)
  const sweep = new ZoneSweep({ ...shared, domains, intervalMs })
  return { ...stores, storage, registrar, domains, infos, nameservers, zones, sweep }
}

/** SQLite in DATA_DIR, for one process. @throws {DataDirError} when another one uses it. */
export async function openEmbeddedStorage({ config, log, clock }: Surroundings): Promise<Storage> {
  const { dataDir } = config
  await using opened = new AsyncDisposableStack()
  opened.defer(await openDataDir(dataDir))
  const database = opened.use(new SqliteSql({ file: join(dataDir, databaseName), migrations, now: clock.now }))
  const onFailure = (error: unknown) => log.error({ err: error }, 'registrar calls not stored; counting in memory')
  const budget = new LocalBudget(database.unsynced, { account: accountName(config), clock, onFailure })
  opened.defer(() => budget.settle())
  await new GivenZones(database.unsynced)
    .forgetWrites()
    .catch((error: unknown) => log.error({ err: error }, 'unfinished writes not forgotten'))
  const owned = opened.move()
  return { database, budget, isActive: () => true, startTasks: (run) => run(), close: () => owned.disposeAsync() }
}
