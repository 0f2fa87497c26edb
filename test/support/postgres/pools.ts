import pg from 'pg'

const pools = new Set<pg.Pool>()

// Services construct theirs when they open a database.
pg.Pool = class extends pg.Pool {
  constructor(options?: pg.PoolConfig) {
    super(options)
    pools.add(this)
  }
}

/** Whether no pool of this process has a statement or a transaction of this database under way, or one that waits. */
export function isDatabaseQuiet(url: string): boolean {
  for (const pool of pools) {
    if (pool.ended) pools.delete(pool)
    else if (pool.options.connectionString === url && pool.totalCount - pool.idleCount + pool.waitingCount > 0)
      return false
  }
  return true
}
