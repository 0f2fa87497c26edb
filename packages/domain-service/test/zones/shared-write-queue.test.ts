import { expect, test } from 'vitest'
import { makeDatabase } from '../support/databases.ts'
import { joinWrites } from '../support/join-writes.ts'
import { startReplicas } from '../support/replicas.ts'
import { start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('a hundred adds of one domain at three replicas are all done, in at most eight calls', async () => {
  await using set = await startReplicas(3, { env: { REGISTRAR_TIMEOUT_MS: '120000' } })
  const { replicas } = set
  const [first] = replicas

  const answers = await joinWrites({ services: replicas, count: 100 }, (n) =>
    (replicas[n % 3] ?? first).call('POST', `${hosts}/A`, {
      body: { name: `r${n}`, address: '192.0.2.9' },
    }),
  )

  expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([201]))
  expect(first.live()).toHaveLength(101)
  expect(first.commands().length).toBeLessThanOrEqual(8)
})

test('a change that a process stops and resumes waiting for, while it is begun, is not sent without its intent', async () => {
  await using database = await makeDatabase()
  await using service = await start({ databaseUrl: database.url })
  const before = service.live()
  // The statement that begins a send skips a row that is renewed while it runs; the next statement finds it again.
  await database.postgres.query(`
    create function domain_service.renew() returns trigger language plpgsql as
      'begin update domain_service.changes set awaited_until = awaited_until + 1; return null; end';
    create trigger renewing before insert on domain_service.sends
      for each statement execute function domain_service.renew()`)

  const body = { name: 'new', address: '192.0.2.9' }
  const refused = await service.call('POST', `${hosts}/A`, { body })
  const sent = service.commands().filter((command) => command === 'dns.sethosts')
  await database.postgres.query('drop trigger renewing on domain_service.sends')
  const done = await service.call('POST', `${hosts}/A`, { body })

  expect([refused.status, refused.body.code, sent]).toEqual([503, 'unavailable', []])
  expect(done.status).toBe(201)
  expect(new Set(service.live())).toEqual(new Set([...before, 'new A 192.0.2.9 1800 10']))
})

const losses = {
  'is gone': 'delete from domain_service.changes',
  'has its id for another one that has ended': `update domain_service.changes
    set request_id = 'another', status = 'cancelled'`,
  'has its id for another one that is queued': `with freed as (update domain_service.leases set until = 0)
    update domain_service.changes set request_id = 'another',
      request = jsonb_set(request::jsonb, '{requestId}', '"another"')::text`,
}

test.each(Object.entries(losses))(
  'a client whose change %s after a failover is told to read the zone',
  async (_, loss) => {
    await using database = await makeDatabase()
    await using service = await start({ databaseUrl: database.url })
    const { postgres } = database
    // Another replica, which does not work.
    await postgres.query("insert into domain_service.leases values ('example.com', 'another', 1, 9000000000000)")

    const answer = service.call('POST', `${hosts}/A`, { body: { name: 'a', address: '192.0.2.9' } })
    const queued = () => postgres.query('select id from domain_service.changes')
    await expect.poll(queued).toHaveLength(1)
    await postgres.query(loss)

    const { status, body } = await answer
    expect([status, body.code]).toEqual([503, 'outcome_unknown'])
  },
)
