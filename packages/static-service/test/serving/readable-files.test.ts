import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { readableFiles } from '../../src/serving/readable-files.ts'

test('a private file is looked up only for who may read it: its absence takes no longer than that of none', async () => {
  const looked: string[] = []
  let reader: object | undefined
  const find = (path: string) => void looked.push(path)
  // Only what finding a file needs.
  const files = readableFiles({
    cache: { find, findEnded: find },
    rules: { isExclusive: true, isPublic: () => false, refresh: async () => {} },
    findReader: async () => reader,
  } as unknown as Parameters<typeof readableFiles>[0])
  const read = () => files.find(new IncomingMessage(new Socket()), 'drafts/a.css')

  await read()
  await files.findEnded('drafts/a.css')
  reader = { role: 'viewer', folders: ['docs/'] }
  await read()
  expect(looked).toEqual([])
  reader = { role: 'viewer', folders: ['drafts/'] }
  await read()
  expect(looked).toEqual(['drafts/a.css'])
})
