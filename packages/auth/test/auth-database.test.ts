import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { archivedAccounts } from '../src/auth-database.ts'
import { makeFolder } from './support/start.ts'

test('tokens that the disk does not show fail a backup, which would lack them', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'auth.sqlite')
  await symlink(file, file) // A link to itself fails, but not with ENOENT, as a broken disk does.

  const read = () => archivedAccounts({ tables: [], migrations: {} }).openFile(folder.path, true)

  expect(read).toThrow('ELOOP')
})
