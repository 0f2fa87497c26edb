import { createLogger } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { ListReader, pageSize } from '../../src/domain-list/list-reader.ts'
import { DomainListStore } from '../../src/domain-list/list-store.ts'
import type { RegistrarClient } from '../../src/registrar/client.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openEmbedded } from '../support/ledger.ts'

test.each([
  ['complete', [2], 2, false],
  ['longer than it says, as in the documents of the registrar', [3], 2, false],
  ['complete on two pages', [pageSize, 1], 101, false],
  ['half of what it says', [1], 2, true],
  ['short on its first page', [pageSize - 1, 1], 101, true],
  ['the same page again and again', [pageSize, pageSize, pageSize], 1_000_000, true, [pageSize, pageSize]],
])('a list that is %s', async (_name, pages, total, lacksSome, read = pages) => {
  const entries = (page: number, count = 0) =>
    Array.from({ length: count }, (_, at) => ({ name: `d${read === pages ? page : 1}-${at}.com` }))
  const registrar = {
    listDomains: async ({ page }: { page: number }) => ({ domains: entries(page, pages[page - 1]), total }),
    quota: { waitMs: () => 0 },
  } as unknown as RegistrarClient // What a reader uses of it.
  const options = {
    registrar,
    store: new DomainListStore(openEmbedded(), 'account'),
    ttlMs: 300_000,
    clock: new FakeClock(),
    log: createLogger({ name: 'test', level: 'silent' }),
  }

  const pass = await new ListReader(options, { complete: undefined, partial: undefined }).read({ isAwaited: true })

  expect(pass.pages.map(({ length }) => length)).toEqual(read)
  // Then nothing is told of domains that it lacks, and it is read again soon.
  expect(pass.hasChanged).toBe(lacksSome)
})
