import { Postgres, SqliteSql } from '@domains-and-files/persistence'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { OnSaved, ResumableBlob, SavedBlob } from '../../src/blobs/blob-store.ts'
import { Uploads, type UploadWriter, uploadMigrations } from '../../src/uploads/uploads.ts'
import { serviceDatabase } from '../support/service-database.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const saved = { size: 5, state: null, tail: null }
const upload = { owner: 'user-alice', path: 'a', metadata: '', length: 10 }
const alice = { id: 'user-alice', username: 'alice', role: 'editor' as const }
const nothing = async () => {}

/** Two processes that share a database, and renew no lease by themselves. */
async function openReplicas(flush?: () => Promise<void>, lifetimeMs = hourMs) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const clock = { now: 1_800_000_000_000 }
  const database = new SqliteSql({
    file: ':memory:',
    migrations: uploadMigrations,
    now: () => clock.now,
  })
  onTestFinished(() => database.close())
  const discarded: string[] = []
  const failures = new Set<string>()
  /** What the store calls while it receives bytes, of each writer. */
  const callbacks: OnSaved[] = []
  const store = {
    resume: (_id: string, _saved: SavedBlob, onSaved: OnSaved): ResumableBlob => {
      callbacks.push(onSaved)
      return {
        write: nothing,
        save: async () => ({}),
        stage: () => Promise.reject(new Error('it has no bytes')),
        [Symbol.asyncDispose]: nothing,
      }
    },
    discard: async (id: string) => {
      if (failures.has(id)) throw new Error(`${id} cannot be removed`)
      discarded.push(id)
    },
  }
  const open = () =>
    new Uploads({ database, lifetimeMs, store, ...(flush && { log: { flush, isIntact: true } }) }, (error) => {
      throw error
    })
  const replicas: [Uploads, Uploads] = [open(), open()]
  const { id } = await replicas[0].create(upload)
  return { clock, discarded, failures, replicas, callbacks, id }
}

/** A writer until `end` is called. */
async function beginWriting(replica: Uploads, id: string) {
  const begun = Promise.withResolvers<UploadWriter>()
  const ended = Promise.withResolvers<void>()
  const writing = replica.write(id, alice, async (writer) => {
    begun.resolve(writer)
    await ended.promise
    await writer.save()
  })
  writing.catch(begun.reject)
  const end = async () => {
    ended.resolve()
    await writing
  }
  return { writer: await begun.promise, end }
}

const isLocked = { code: 'upload_locked' }

test('a second writer takes over once the first has been silent for ten seconds', async () => {
  const { clock, replicas, id } = await openReplicas()
  const [one, other] = replicas
  const first = await beginWriting(one, id)

  clock.now += 6000
  await first.writer.record({})
  clock.now += 9999
  await expect(other.write(id, alice, nothing)).rejects.toMatchObject(isLocked)
  clock.now += 1
  const second = await beginWriting(other, id)

  await expect(first.writer.record(saved)).rejects.toMatchObject(isLocked)
  await expect(first.writer.record({})).rejects.toMatchObject(isLocked)
  await expect(first.end()).rejects.toMatchObject(isLocked)
  await second.writer.record(saved)
  await second.end()
  await expect(second.writer.record({})).rejects.toMatchObject(isLocked)
  const third = await beginWriting(one, id)
  expect(third.writer.upload).toMatchObject({ size: 5, epoch: 1 })
  await third.end()
})

test('bytes of a request with a checksum do not count while they arrive, and stop once another writer has the upload', async () => {
  const { clock, replicas, callbacks, id } = await openReplicas()
  const [one, other] = replicas
  const first = await beginWriting(one, id)
  first.writer.isTentative = true

  await callbacks[0]?.(saved)
  const arrived = await one.find(id, alice)
  clock.now += 10_000
  const second = await beginWriting(other, id)

  expect(arrived.size).toBe(0)
  await expect(callbacks[0]?.(saved)).rejects.toMatchObject(isLocked)
  await second.end()
})

test('the start of a single process ends the leases of the previous one, that of a stored file too', async () => {
  const { replicas, id } = await openReplicas()
  const [previous, next] = replicas
  const unfinished = (await previous.create(upload)).id
  const { writer } = await beginWriting(previous, id)
  await writer.end({})
  await beginWriting(previous, unfinished)

  expect(await next.restart()).toEqual(new Set([unfinished]))

  await expect(next.write(id, alice, nothing)).resolves.toMatchObject({ outcome: '{}' })
  await next.write(unfinished, alice, nothing)
})

test('an upload expires after its last request, is known for a day, and is then forgotten', async () => {
  const { clock, discarded, replicas, id } = await openReplicas()
  const [uploads] = replicas
  const hasEnded = { code: 'upload_ended' }
  clock.now += hourMs - 1
  await uploads.write(id, alice, (writer) => writer.record(saved))

  clock.now += hourMs - 1
  await uploads.sweep()
  expect([await uploads.find(id, alice), discarded]).toMatchObject([{ size: 5 }, []])
  clock.now += 1
  await expect(uploads.find(id, alice)).rejects.toMatchObject(hasEnded)
  await uploads.sweep()
  expect(discarded).toEqual([id])
  clock.now += dayMs - 1
  await uploads.sweep()
  await expect(uploads.write(id, alice, nothing)).rejects.toMatchObject(hasEnded)
  clock.now += 1
  await uploads.sweep()
  await expect(uploads.find(id, alice)).rejects.toMatchObject({ code: 'upload_not_found' })
})

test('uploads that ended or have expired do not count as unfinished', async () => {
  const { clock, replicas, id } = await openReplicas()
  const [uploads] = replicas
  const create = () => uploads.create(upload)
  const isRefused = { code: 'too_many_uploads' }
  for (let count = 1; count < 100; count += 1) await create()
  await expect(create()).rejects.toMatchObject(isRefused)

  await uploads.write(id, alice, (writer) => writer.end({}))
  await create()
  await expect(create()).rejects.toMatchObject(isRefused)
  clock.now += hourMs

  expect(await create()).toMatchObject({ size: 0 })
})

test('an upload does not expire while its writer is heard of', async () => {
  const { clock, discarded, replicas, id } = await openReplicas()
  const [uploads] = replicas
  const { writer, end } = await beginWriting(uploads, id)
  clock.now += hourMs - 5000
  await writer.record({})

  clock.now += 5000
  await uploads.sweep()
  await writer.record(saved)
  await end()

  expect(discarded).toEqual([])
})

test('a writer that slept until its upload had expired does not revive it', async () => {
  const { clock, discarded, replicas, id } = await openReplicas()
  const [one, other] = replicas
  const { writer, end } = await beginWriting(one, id)

  clock.now += hourMs
  await other.sweep()

  expect(discarded).toEqual([id])
  await expect(writer.record(saved)).rejects.toMatchObject(isLocked)
  await expect(end()).rejects.toMatchObject(isLocked)
  await expect(other.find(id, alice)).rejects.toMatchObject({ code: 'upload_ended' })
})

test('bytes that a sweep cannot remove are removed by a later one, and those of others at once', async () => {
  const { clock, discarded, failures, replicas, id } = await openReplicas()
  const [uploads] = replicas
  const other = await uploads.create(upload)
  clock.now += hourMs
  failures.add(id)

  await expect(uploads.sweep()).rejects.toThrow(id)
  expect(discarded).toEqual([other.id])
  failures.clear()
  await uploads.sweep()

  expect(discarded).toEqual([other.id, id])
})

test('an upload that lives for less than a lease has its time after its writer', async () => {
  const { clock, discarded, replicas, id } = await openReplicas(undefined, 1000)
  const [uploads] = replicas
  const { writer, end } = await beginWriting(uploads, id)

  clock.now += 5000
  await uploads.sweep()
  const known = await uploads.find(id, alice)
  await writer.record(saved)
  await end()
  clock.now += 999
  const left = await uploads.find(id, alice)
  clock.now += 1
  await uploads.sweep()

  expect([known.size, left.size, discarded]).toEqual([0, 5, [id]])
})

test('of two replicas that sweep at once, each removes what the other does not', async () => {
  await using stored = await serviceDatabase()
  const postgres = await Postgres.open({
    url: stored.url,
    maxConnections: 5,
    timeoutMs: 150_000,
    schema: 'static_service',
    migrations: uploadMigrations,
    onError: () => undefined,
  })
  onTestFinished(() => postgres.close())
  const discarded: string[] = []
  const store = {
    resume: () => Promise.reject(new Error('nobody writes')) as never,
    discard: async (id: string) => void discarded.push(id),
  }
  const [one, other] = [1, 2].map(() => new Uploads({ database: postgres, lifetimeMs: hourMs, store }, () => undefined))
  const ids = Array.from({ length: 50 }, (_, at) => `upload ${at}`)
  await postgres.query(
    `insert into static_service.uploads (id, owner, path, metadata, size, is_ended, expires_at, writer_until, epoch)
     select id, 'alice', 'a', '', 0, 0, case when id = 'upload 0' then 9e15 else 1 end, 0, 0 from unnest($1::text[]) id`,
    [ids],
  )

  await Promise.all([one?.sweep(), other?.sweep(), one?.sweep(), other?.sweep()])

  expect(discarded.toSorted()).toEqual(ids.slice(1).toSorted())
  await Promise.all([one?.close(), other?.close()])
})

test('what a response tells is flushed before, and leases are not', async () => {
  let flushes = 0
  const { replicas, id } = await openReplicas(async () => {
    flushes += 1
  })
  const [uploads] = replicas
  const countOf = async (work: Promise<unknown>) => {
    const before = flushes
    await work
    return flushes - before
  }

  const created = flushes
  let counts = {}
  await uploads.write(id, alice, async (writer) => {
    counts = {
      acquire: flushes - created,
      renew: await countOf(writer.record({})),
      record: await countOf(writer.record(saved)),
      findWhileWritten: await countOf(uploads.find(id, alice)),
    }
  })
  const afterwards = {
    release: flushes - created - 2,
    find: await countOf(uploads.find(id, alice)),
    end: await countOf(uploads.write(id, alice, (writer) => writer.end())),
  }

  expect({ created, ...counts, ...afterwards }).toEqual({
    created: 1,
    acquire: 0,
    renew: 0,
    record: 1,
    findWhileWritten: 1,
    release: 0,
    find: 0,
    end: 1,
  })
})
