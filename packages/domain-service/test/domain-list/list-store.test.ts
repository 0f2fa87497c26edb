import { expect, test } from 'vitest'
import { z } from 'zod'
import { DomainListStore } from '../../src/domain-list/list-store.ts'
import { ledgers } from '../support/ledgers.ts'
import { startReplicas } from '../support/replicas.ts'

const List = z.object({ domain_list: z.object({ domains: z.number().nullable() }) })

test('one replica reads the list for all of them', async () => {
  const domains = Array.from({ length: 250 }, (_, n) => ({ name: `d${n}.com` }))
  await using set = await startReplicas(2, { domains })

  await Promise.all(set.replicas.map((replica) => replica.call('GET', '/api/domains')))
  const countAll = () =>
    Promise.all(
      set.replicas.map(async (replica) => {
        const { body } = await replica.call('GET', '/api/registrar')
        return List.parse(body).domain_list.domains
      }),
    )
  await expect.poll(countAll).toEqual([250, 250])

  // A request that has waited long for the first page reads a shorter one directly.
  const pages = set.replicas[0].sandbox.calls
    .filter(({ params }) => params.PageSize === '100')
    .map(({ params }) => params.Page)
  expect(pages).toEqual(['1', '2', '3'])
})

test.each(ledgers)(
  '%s: a pass goes on at any process, and the lists of other accounts stay',
  async (_name, openForm) => {
    const { sql } = await openForm()
    const open = (account: string) => new DomainListStore(sql, account)
    const begun = { startedAt: 10, total: 150, hasChanged: false, pages: [[]] }
    const ended = { startedAt: 1, total: 0, hasChanged: false, pages: [[]], completedAt: 2 }
    const other = await open('other').addPage(ended)
    const pass = await open('account').addPage(begun)

    const { partial } = await open('account').load()
    await open('account').addPage({ ...begun, id: pass, pages: [[], []], completedAt: 20 })
    const next = await open('account').addPage({ ...ended, startedAt: 30, completedAt: 40 })

    expect(partial).toMatchObject({ id: pass, startedAt: 10, total: 150, pages: [[]] })
    expect((await open('account').load()).complete).toMatchObject({ id: next, completedAt: 40 })
    expect((await open('other').load()).complete).toMatchObject({ id: other })
  },
)
