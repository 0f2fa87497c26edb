import type { Postgres } from '@domains-and-files/persistence'
import { type Metrics, registerGauge } from './metrics.ts'

/** The connections of a process to PostgreSQL, and what the probe last saw. */
export function registerDatabaseMetrics(
  metrics: Metrics | undefined,
  database: Pick<Postgres, 'isAvailable' | 'pool'>,
) {
  registerGauge(
    metrics,
    { name: 'database_available', help: '1 if PostgreSQL answered the last check, else 0' },
    () => Number(database.isAvailable),
  )
  registerGauge(
    metrics,
    { name: 'database_connections', help: 'Connections to PostgreSQL', label: 'state' },
    () => {
      const { total, idle } = database.pool
      return { idle, used: total - idle }
    },
  )
  registerGauge(
    metrics,
    {
      name: 'database_connections_waiting',
      help: 'Statements and transactions queued for a connection',
    },
    () => database.pool.waiting,
  )
}
