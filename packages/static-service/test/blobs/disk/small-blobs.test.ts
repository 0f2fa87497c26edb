import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { blobDatabaseFile, SmallBlobs } from '../../../src/blobs/disk/small-blobs.ts'

test('an outage during the retry of one command of a failed group is an outage for its caller', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'small-blobs-'))
  const small = new SmallBlobs(folder.path)
  // SQLite fails with SQLITE_CONSTRAINT_TRIGGER, which counts as an outage: no statement of the service has a trigger.
  const database = new Sqlite(blobDatabaseFile(folder.path))
  database.exec(`create trigger outage before insert on contents when new.digest = x'bb'
    begin select raise(abort, 'outage'); end`)
  database.close()

  const ends = await Promise.allSettled([
    small.store('aa', 'identity', null as never), // Fails the group, for a reason of its own.
    small.store('bb', 'identity', Buffer.from('text')),
    small.store('cc', 'identity', Buffer.from('text')),
  ])
  const stored = small.sizeOf('cc', 'identity')
  await small.close()

  expect(ends).toMatchObject([
    { reason: { code: 'SQLITE_CONSTRAINT_NOTNULL' } },
    { reason: expect.any(DatabaseUnavailableError) },
    { status: 'fulfilled' },
  ])
  expect(stored).toBe(4)
})
