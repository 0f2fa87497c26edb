import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readEnv } from '@domains-and-files/http'
import { Postgres } from '@domains-and-files/persistence'
import { z } from 'zod'
import { Bucket } from '../../../src/blobs/s3/bucket.ts'
import { contentMigrations } from '../../../src/blobs/s3/content-commit.ts'
import { S3BlobStore } from '../../../src/blobs/s3/s3-blob-store.ts'
import { s3Config, s3Settings } from '../../../src/config.ts'
import { serviceDatabase } from '../service-database.ts'
import { type S3Server, startS3 } from './s3-server.ts'

interface Options {
  /** Without progress on S3. */
  timeoutMs?: number
}

export interface S3Contents extends AsyncDisposable {
  store: S3BlobStore
  s3: S3Server
  postgres: Postgres
  errors: unknown[]
  /** Temporary files of `store`. */
  tmp: string
  /** Stores and commits a content, as an upload does; returns its digest. */
  add: (content: string | Buffer) => Promise<string>
  /** What the catalog's transaction does when first files refer to contents. */
  commit: (...digests: string[]) => Promise<void>
  /** What it does when no file refers to contents any more. */
  free: (...digests: string[]) => Promise<void>
  /** A store of another replica, with its own temporary files. */
  openReplica: (options?: Options) => Promise<S3BlobStore>
  /** The keys in a table, sorted. */
  keysIn: (table: 'contents' | 'garbage') => Promise<string[]>
  /** As if the grace, and the time of uploads, were over. */
  makeDue: () => Promise<void>
}

/** Contents on an S3 server for tests and on a PostgreSQL database of their own. */
export async function openS3Contents(): Promise<S3Contents> {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await serviceDatabase())
  const s3 = stack.use(await startS3())
  const folder = await mkdtemp(join(tmpdir(), 's3-contents-'))
  stack.defer(() => rm(folder, { recursive: true }))
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const postgres = await Postgres.open({
    url: database.url,
    maxConnections: 10,
    timeoutMs: 150_000,
    schema: 'static_service',
    migrations: { contents: contentMigrations },
    onError,
  })
  stack.defer(() => postgres.close())
  const settings = s3Config(readEnv(z.object(s3Settings), s3.env), s3.env)
  if (!settings) throw new Error('the S3 server of the tests has no bucket')
  const owned = stack.move()
  let replicas = 0
  const openReplica = async ({ timeoutMs = 150_000 }: Options = {}) => {
    const bucket = await Bucket.open({
      ...settings,
      timeoutMs,
    })
    replicas += 1
    const dataDir = join(folder, String(replicas))
    const replica = await S3BlobStore.open({
      postgres,
      bucket,
      prefix: settings.prefix,
      graceSeconds: 3600,
      dataDir,
      onError,
    })
    owned.defer(() => replica.close())
    return replica
  }
  const store = await openReplica()
  const change = (change: { added: string[]; freed: string[] }) =>
    postgres.transaction(async (transaction) => {
      const missing = await store.commits.findMissing(transaction, change.added)
      if (missing.size > 0) throw new Error(`missing: ${[...missing]}`)
      await store.commits.apply(transaction, change)
    })
  const commit = (...added: string[]) => change({ added, freed: [] })
  return {
    store,
    s3,
    postgres,
    errors,
    tmp: join(folder, '1', 'tmp'),
    add: async (content) => {
      await using draft = store.draft()
      await draft.write(Buffer.from(content))
      await draft.seal()
      const { digest } = await draft.keep()
      await commit(digest)
      return digest
    },
    commit,
    free: (...freed) => change({ added: [], freed }),
    openReplica,
    keysIn: async (table) => {
      const rows = await postgres.query<{ object_key: string }>(
        `select object_key from static_service.${table} where object_key is not null order by 1`,
      )
      return rows.map(({ object_key }) => object_key)
    },
    makeDue: async () => {
      await postgres.query("update static_service.garbage set due_at = now() - interval '1 s'")
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
