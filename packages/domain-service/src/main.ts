import { BadUsersFile, ensureFirstAdmin, resolveSecret, StartRefused, Users } from '@house/auth'
import { BadEnvironment, Counter, createLogger, createMetrics, serve } from '@house/http'
import { buildApp } from './app.ts'
import { Breaker } from './breaker.ts'
import { Budget } from './budget.ts'
import { readConfig } from './config.ts'
import { openDatabase } from './database.ts'
import { Journal } from './journal.ts'
import { Registrar } from './registrar.ts'
import { Zones } from './zones.ts'

try {
  const config = readConfig(process.env)
  const { auth, production, dataDir } = config
  const log = createLogger({ name: 'domain-service', level: config.logLevel })
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
  const metrics = createMetrics()
  const calls = new Counter({
    name: 'registrar_calls_total',
    help: 'Calls to the registrar, by command and outcome',
    labelNames: ['command', 'outcome'],
    registers: [metrics],
  })
  const registrar = new Registrar({
    account: config.account,
    timeout: config.timeout,
    budget: new Budget({ limits: config.limits, database }),
    breaker: new Breaker(),
    log,
    calls,
  })
  const journal = new Journal(database)
  const zones = new Zones({
    registrar,
    journal,
    cacheTtl: config.cacheTtl,
    verify: config.verify,
    log,
  })
  const app = await buildApp({
    config,
    secret,
    users,
    database,
    registrar,
    journal,
    zones,
    metrics,
    log,
  })
  app.addHook('onClose', async () => {
    await zones.settle()
    await registrar.close()
    database.close()
  })
  await serve(app, config.address)
} catch (error) {
  const isToldPlainly = [BadEnvironment, StartRefused, BadUsersFile].some(
    (kind) => error instanceof kind,
  )
  if (!isToldPlainly || !(error instanceof Error)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
