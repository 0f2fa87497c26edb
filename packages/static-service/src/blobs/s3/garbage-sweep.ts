import { randomUUID } from 'node:crypto'
import { BackgroundTask, type Postgres, sql } from '@domains-and-files/persistence'
import type { ObjectOptions } from './object-uploads.ts'

interface Garbage {
  key: string
  uploadId: string | null
}

/**
 * Deletes garbage objects that are due. Any number of replicas may sweep concurrently. An object leaves the garbage
 * table only after its deletion: if a sweep dies, the next one deletes it again.
 */
export class GarbageSweep {
  readonly #options: ObjectOptions
  readonly #repeated: BackgroundTask
  deleted = 0

  /** `intervalMs`: undefined: only `runFor` sweeps. */
  constructor(options: ObjectOptions, intervalMs: number | undefined) {
    const { onError } = options
    this.#options = options
    this.#repeated = new BackgroundTask({ run: () => this.#sweep(), intervalMs, onError })
  }

  /** Deletes the garbage of these blobs now, without the grace, and all that is due. Reports errors: the next run tries again. */
  async runFor(digests: string[]): Promise<void> {
    await this.#options.postgres.run(
      sql`update static_service.garbage set due_at = clock_timestamp() where digest = any(${digests})`,
    )
    await this.#repeated.runAgain() // A running sweep may have missed them.
  }

  /** Counts the objects to be deleted, those of uncommitted uploads among them. */
  async count(): Promise<number> {
    const found = await this.#options.postgres.get<{ count: number }>(sql`select count(*) from static_service.garbage`)
    return found?.count ?? 0
  }

  close(): Promise<void> {
    return this.#repeated.close()
  }

  // An object that the store refuses to delete does not hold up the others.
  async #sweep() {
    let failure: PromiseRejectedResult | undefined
    for (let isLast = false; !isLast; ) {
      const claimed = await this.#claim()
      const failures = await this.#delete(claimed)
      failure ??= failures[0]
      isLast = claimed.length < batchSize || failures.length === claimed.length
    }
    if (failure) throw failure.reason
  }

  // Claims garbage by postponing it, so that no transaction is open during calls to the store. Never deletes an object
  // that a blob refers to, even if the table lists it.
  #claim(): Promise<Garbage[]> {
    return this.#options.postgres.all<Garbage>(
      sql`update static_service.garbage set due_at = clock_timestamp() + interval '5 minutes'
       where object_key in (
         select object_key from static_service.garbage g
         where due_at <= clock_timestamp()
           and not exists (select from static_service.backups where expires_at > clock_timestamp())
           and not exists (select from static_service.contents c where c.object_key = g.object_key)
         order by due_at limit ${batchSize} for update skip locked)
       returning object_key key, upload_id "uploadId"`,
    )
  }

  /** Returns the objects that could not be deleted: they stay claimed. */
  async #delete(claimed: Garbage[]): Promise<PromiseRejectedResult[]> {
    if (claimed.length === 0) return []
    const { bucket, postgres } = this.#options
    const results = await Promise.allSettled(
      claimed.map(async ({ key, uploadId }) => {
        if (uploadId !== null) await bucket.abortMultipart({ key, uploadId })
        await bucket.remove(key)
        return key
      }),
    )
    const done = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
    await postgres.run(sql`delete from static_service.garbage where object_key = any(${done})`)
    this.deleted += done.length
    return results.filter((result) => result.status === 'rejected')
  }
}

const batchSize = 32

/**
 * Lease that keeps all replicas from deleting objects while a backup runs. Acquired before the backup's snapshot: a sweep
 * that is still running deletes only older garbage, which is not in the snapshot. It expires if its process is killed.
 */
export async function holdGarbage(postgres: Postgres): Promise<AsyncDisposable> {
  const id = randomUUID()
  const renew = () =>
    postgres.run(
      sql`insert into static_service.backups values (${id}, clock_timestamp() + interval '10 minutes')
       on conflict (id) do update set expires_at = excluded.expires_at`,
    )
  await renew()
  // A failed renewal is ignored: the next comes long before the lease expires.
  const renewing = new BackgroundTask({ run: renew, intervalMs: 60_000, onError: () => undefined })
  return {
    [Symbol.asyncDispose]: async () => {
      await renewing.close()
      await postgres.run(sql`delete from static_service.backups where id = ${id}`)
    },
  }
}
