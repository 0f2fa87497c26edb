import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ServerProcess } from '../../test/support/postgres/server-process.ts'
import { type Program, script, start } from './program.ts'
import { cores } from './settings.ts'

/** A PostgreSQL server and an S3 store on the load's core, as if they were other machines. */
export interface Stores extends AsyncDisposable {
  /** Settings of a service that uses them. */
  env: Record<string, string>
  s3: Program
}

/** PostgreSQL from npm with durable commits; as S3 the store of the tests, which does not flush. */
export async function startStores(folder: string): Promise<Stores> {
  await using opened = new AsyncDisposableStack()
  const postgres = opened.use(await startPostgres(join(folder, 'postgres')))
  const s3 = opened.use(await startS3(folder))
  const owned = opened.move()
  return {
    env: { DATABASE_URL: postgres.url, ...s3Settings(s3) },
    s3,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** A PostgreSQL server with one database; with the data that an earlier one left in this directory. */
export async function startPostgres(directory: string): Promise<AsyncDisposable & { url: string }> {
  const server = await ServerProcess.create(directory, {
    launcher: ['taskset', '-c', String(cores.load)],
    settings: { fsync: 'on', full_page_writes: 'on', shared_buffers: '512MB' },
  })
  // It outlives its parent otherwise.
  const end = () => void (server.pid && process.kill(server.pid, 'SIGQUIT'))
  process.on('exit', end)
  return {
    url: server.urlOf('postgres'),
    async [Symbol.asyncDispose]() {
      await server.stop()
      process.off('exit', end)
    },
  }
}

/** Enough for the store, which checks no signatures. */
export const s3Authorization = 'AWS4-HMAC-SHA256 Credential=test-access-key/'

function startS3(folder: string): Promise<Program> {
  const objects = join(folder, 'objects')
  mkdirSync(objects)
  return start({
    name: 's3-store',
    run: () => script('peers/s3-store.ts'),
    folder,
    core: cores.load,
    env: { TMPDIR: objects },
    isUp: (status) => status === 403,
  })
}

const s3Settings = ({ url }: Program) => ({
  S3_BUCKET: 'contents',
  S3_ENDPOINT: url,
  S3_FORCE_PATH_STYLE: 'true',
  S3_PREFIX: 'files',
  AWS_ACCESS_KEY_ID: 'test-access-key',
  AWS_SECRET_ACCESS_KEY: 'test-secret-key',
})
