import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { ServerProcess } from '../../../../test/support/postgres/server-process.ts'
import { DatabaseFullError, DatabaseUnavailableError, type Postgres } from '../../src/index.ts'
import { addItem, isStored, openPostgres } from '../support/postgres.ts'

describe('the server', () => {
  const directory = mkdtempSync(join(tmpdir(), 'pg-'))
  let server: ServerProcess
  let postgres: Postgres

  beforeAll(async () => {
    server = await ServerProcess.create(join(directory, 'server'))
    postgres = await openPostgres(server.urlOf('postgres'))
  })
  afterAll(async () => {
    await postgres.close()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  })

  it.each(['SIGINT', 'SIGQUIT'] as const)(
    'that is stopped by %s and started again is used again, and the probe sees both',
    async (signal) => {
      const before = signal === 'SIGINT' ? 1 : 2
      await addItem(postgres, before)
      await server.stop(signal)

      await expect(postgres.query('select 1')).rejects.toThrow(DatabaseUnavailableError)
      await expect(addItem(postgres, 100)).rejects.toThrow(DatabaseUnavailableError)
      await expect.poll(() => postgres.isAvailable).toBe(false)

      await server.start()
      await expect.poll(() => postgres.isAvailable).toBe(true)
      expect(await isStored(postgres, before)).toBe(true)
      expect(await isStored(postgres, 100)).toBe(false)
    },
  )

  it('whose disk is full refuses the transaction as such', async () => {
    const full = postgres.transaction((transaction) =>
      transaction.query(`do $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$`),
    )

    await expect(full).rejects.toThrow(DatabaseFullError)
  })

  it('that is starting is waited for, and the reason is reported once', async () => {
    stopTime()
    await server.stop('SIGINT')
    const errors: unknown[] = []
    const waiting = openPostgres(server.urlOf('postgres'), {
      onError: (error) => errors.push(error),
    })
    await expect.poll(() => errors).toHaveLength(1)

    await server.start()

    expect(await isStored(await waiting, 1)).toBe(true)
    expect(errors).toEqual([expect.any(DatabaseUnavailableError)])
    await (await waiting).close()
  })

  it('that answers nothing although connections are accepted is waited for', async () => {
    stopTime()
    await using proxy = await PostgresProxy.open(server.urlOf('postgres'))
    proxy.ignoreQueries()
    const report = Promise.withResolvers<unknown>()
    const waiting = openPostgres(proxy.url, { timeoutMs: 300, onError: report.resolve })
    expect(await report.promise).toBeInstanceOf(DatabaseUnavailableError)

    proxy.resume()

    await using opened = await waiting
    // On a busy machine a new connection may take longer than the time limit.
    await expect.poll(() => isStored(opened, 1).catch(() => false)).toBe(true)
  })

  it('that does not know the database is refused at once', async () => {
    await expect(openPostgres(server.urlOf('missing'))).rejects.toThrow(
      'Cannot use the database in DATABASE_URL: database "missing" does not exist.',
    )
  })

  it('that the direct URL does not lead to is refused by the name of that setting', async () => {
    const urls = [server.urlOf('postgres'), { directUrl: server.urlOf('missing') }] as const
    await expect(openPostgres(...urls)).rejects.toThrow(
      'Cannot use the database in DATABASE_DIRECT_URL: database "missing" does not exist.',
    )
  })
})

/** Until the test ends, so that a start is not given up: on a busy machine what it waits for may take longer. */
function stopTime() {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
  onTestFinished(() => void vi.useRealTimers())
}
