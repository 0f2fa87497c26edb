import type { Logger } from '@domains-and-files/http'
import type { Config } from './config.ts'
import type { Storage } from './storage.ts'

/**
 * The storage that the settings select: SQLite and a folder, or PostgreSQL and S3. Each is loaded only when it is used.
 * @throws {DataDirError} when it cannot be used.
 */
export async function openStorage(config: Config, log: Logger): Promise<Storage> {
  const { database, s3 } = config
  if (database && s3) {
    const { openSharedStorage } = await import('./shared-storage.ts')
    return openSharedStorage({ ...config, database, s3 }, log)
  }
  const { openEmbeddedStorage } = await import('./embedded-storage.ts')
  return openEmbeddedStorage(config, log)
}
