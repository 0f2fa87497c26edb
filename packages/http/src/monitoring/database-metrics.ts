import type { Postgres } from '@domains-and-files/persistence'
import type { Registry } from 'prom-client'
import { registerGauge } from './metrics.ts'

/** The connections of a process to PostgreSQL, and what the probe last saw. */
export function registerDatabaseMetrics(
  registry: Registry,
  database: Pick<Postgres, 'isAvailable' | 'pool'>,
) {
  registerGauge(
    registry,
    { name: 'database_available', help: '1 if PostgreSQL answered the last check, else 0' },
    () => Number(database.isAvailable),
  )
  registerGauge(
    registry,
    { name: 'database_connections', help: 'Connections to PostgreSQL', label: 'state' },
    () => {
      const { total, idle } = database.pool
      return { idle, used: total - idle }
    },
  )
  registerGauge(
    registry,
    {
      name: 'database_connections_waiting',
      help: 'Statements and transactions queued for a connection',
    },
    () => database.pool.waiting,
  )
}
