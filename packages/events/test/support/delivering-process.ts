// Delivers to webhooks until it is killed. Its argument is a `location` of databases.ts, with the time.
import { Postgres, SqliteSql } from '@domains-and-files/persistence'
import { z } from 'zod'
import { openProcess } from './deliveries.ts'

const Location = z.union([z.object({ file: z.string(), now: z.number() }), z.object({ url: z.string() })])
const location = Location.parse(JSON.parse(process.argv[2] ?? ''))
const sql =
  'file' in location
    ? new SqliteSql({ file: location.file, now: () => location.now })
    : await Postgres.open({
        url: location.url,
        schema: 'sample',
        migrations: {},
        maxConnections: 4,
        timeoutMs: 150_000,
        onError: () => undefined,
      })
openProcess(sql, new AsyncDisposableStack())
process.stdin.resume() // It ends with its parent.
