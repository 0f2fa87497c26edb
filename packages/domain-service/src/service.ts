import { ensureFirstAdmin, resolveSecret, Users } from '@domains-and-files/auth'
import { type App, createMetrics, type Logger } from '@domains-and-files/http'
import { lockFolder, makeFolder } from '@domains-and-files/persistence'
import { buildApp } from './app.ts'
import type { Config } from './config.ts'
import { Budget } from './ledger/call-quota.ts'
import { Journal } from './ledger/change-history.ts'
import { openCounter, openDatabase } from './ledger/database.ts'
import { timeCalls } from './metrics.ts'
import { Breaker } from './registrar/circuit-breaker.ts'
import { Registrar } from './registrar/client.ts'
import { Zones } from './zones/zone-writer.ts'

/**
 * Makes the parts, and the app that closes them in order when it is closed.
 * @throws {FolderRefused} when another process has the data folder, {StartRefused} when nobody may log in.
 */
export async function makeService(config: Config, log: Logger): Promise<App> {
  const { auth, production, dataDir } = config
  await makeFolder(dataDir)
  const unlock = lockFolder(dataDir)
  try {
    const secret = await resolveSecret({ secret: auth.secret, production, dataDir })
    await ensureFirstAdmin(auth.usersFile, {
      username: auth.adminUsername,
      password: auth.adminPassword,
      production,
    })
    const users = await Users.open(auth.usersFile, (error) =>
      log.error({ err: error }, 'users file not read: the last good one stays in force'),
    )
    const database = openDatabase(dataDir)
    const counter = openCounter(dataDir)
    const metrics = createMetrics()
    const registrar = new Registrar({
      account: config.account,
      timeout: config.timeout,
      budget: new Budget({ limits: config.limits, database: counter }),
      breaker: new Breaker(),
      log,
      calls: timeCalls(metrics),
    })
    const journal = new Journal(database)
    const { cacheTtl, timeout, verify } = config
    const zones = new Zones({ registrar, journal, cacheTtl, timeout, verify, log })
    const parts = { config, secret, users, database, registrar, journal, zones, metrics, log }
    const app = await buildApp(parts)
    app.addHook('onClose', async () => {
      await zones.settle()
      await registrar.close()
      counter.close()
      database.close()
      unlock()
    })
    return app
  } catch (error) {
    unlock()
    throw error
  }
}
