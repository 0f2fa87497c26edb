import { expect, test } from 'vitest'
import { findMiscounts } from '../../src/catalog/find-miscounts.ts'
import { newDatabase, openReplica, putPaths } from '../support/catalogs.ts'

test.each([
  ['update static_service.blobs set refs = refs + 1', /content/],
  ["update static_service.directories set file_count = 3 where path = 'a'", /directory \/a/],
  ["update static_service.directories set children = 0 where path = ''", /directory \/$/],
  ["update static_service.files set name = 'x'", /^a\/b$/],
  ["delete from static_service.directories where path = 'a'", /^a\/b$/],
  ['update static_service.categories set total_size = 0', /category document/],
  ['update static_service.catalog set stored_size = 0', /stored bytes/],
])('a wrong count is found: %s', async (damage, named) => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  await putPaths(catalog, ['a/b'])

  const before = await findMiscounts(postgres)
  await postgres.query(damage)
  const after = await findMiscounts(postgres)

  expect(before).toEqual([])
  expect(after.map(({ path }) => path)).toContainEqual(expect.stringMatching(named))
})
