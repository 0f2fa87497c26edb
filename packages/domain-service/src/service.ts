import { ensureFirstAdmin, resolveSecret, Users } from '@house/auth'
import { lockFolder, makeFolder } from '@house/data'
import { type App, createMetrics, type Logger } from '@house/http'
import { buildApp } from './app.ts'
import { Breaker } from './breaker.ts'
import { Budget } from './budget.ts'
import type { Config } from './config.ts'
import { openCounter, openDatabase } from './database.ts'
import { Journal } from './journal.ts'
import { timeCalls } from './metrics.ts'
import { Registrar } from './registrar.ts'
import { Zones } from './zones.ts'

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
