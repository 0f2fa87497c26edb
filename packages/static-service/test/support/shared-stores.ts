import { keepConnection, runOnServer } from '../../../../test/support/postgres/test-database.ts'
import { type S3Server, startS3 } from './s3/s3-server.ts'
import { emptyDatabase, serviceDatabase } from './service-database.ts'
import { filesBelow } from './stored-contents.ts'

export interface SharedStores extends AsyncDisposable {
  /** Settings of a service that uses them. */
  env: Record<string, string>
  s3: S3Server
  /** The contents that files refer to, compressed forms, unfinished uploads, and what lies in a replica's `tmp`. */
  storedContents: (dataDir: string) => Promise<string[]>
  /** Runs a statement in the database, as another process would. */
  query: <Row>(text: string, values?: unknown[]) => Promise<Row[]>
}

/** A PostgreSQL database and an S3 store of their own, for any number of services; `isEmpty`: without the users of the tests. */
export async function startSharedStores({ isEmpty = false } = {}): Promise<SharedStores> {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await (isEmpty ? emptyDatabase() : serviceDatabase()))
  const connection = keepConnection(url)
  opened.defer(() => connection.end())
  const s3 = opened.use(await startS3())
  const owned = opened.move()
  return {
    // A busy machine is no outage.
    env: { DATABASE_URL: url, DATABASE_TIMEOUT_MS: '150000', ...s3.env, S3_TIMEOUT_MS: '150000' },
    s3,
    storedContents: async (dataDir) => {
      const { rows } = await connection.query<{ content: string }>(
        `select digest || ' ' || coding content from static_service.contents
         union all select 'upload ' || id from static_service.uploads
           where outcome is null and is_ended = 0 and size > 0 order by 1`,
      )
      return [...filesBelow(`${dataDir}/tmp`), ...rows.map(({ content }) => content)]
    },
    query: (text, values) => runOnServer(url, text, values),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
