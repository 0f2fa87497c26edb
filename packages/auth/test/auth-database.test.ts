import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readAuthFolder } from '../src/auth-database.ts'
import { makeFolder } from './support/start.ts'

test('tokens that the disk does not show fail a backup, which would lack them', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'auth.sqlite')
  await symlink(file, file) // A link to itself fails, but not with ENOENT, as a broken disk does.

  const backup = readAuthFolder({ dataDir: folder.path }, [], async () => 'made')

  await expect(backup).rejects.toThrow('ELOOP')
})
