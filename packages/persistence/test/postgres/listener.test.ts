import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { openPostgres } from '../support/postgres.ts'

describe('notifications', () => {
  it('arrive on a direct connection, and after a lost one every listener is called', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.directUrl)
    const postgres = await openPostgres(database.url, { directUrl: proxy.url })
    const payloads: string[] = []
    expect(postgres.listen('sample_changes', (payload) => payloads.push(payload))).toBe(true)
    await expect.poll(() => payloads).toEqual([''])

    await postgres.query("select pg_notify('sample_changes', 'first')")
    await expect.poll(() => payloads).toEqual(['', 'first'])
    proxy.cut()
    await expect.poll(() => payloads).toEqual(['', 'first', ''])

    await postgres.close()
  })

  it('arrive again after the connection of a machine that has vanished is given up', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.directUrl)
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    // The first warning of a kind is the only one of its process.
    const warn = vi.spyOn(process, 'emitWarning')
    onTestFinished(() => warn.mockRestore())
    await using postgres = await openPostgres(database.url, { directUrl: proxy.url, onError })
    const payloads: string[] = []
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    postgres.listen('sample_changes', (payload) => payloads.push(payload))
    await expect.poll(() => payloads).toEqual([''])

    proxy.silence()
    const isGivenUp = async () => {
      await vi.advanceTimersByTimeAsync(30_000)
      return errors.length > 0
    }
    await expect.poll(isGivenUp).toBe(true)
    proxy.resume()

    const isRenewed = async () => {
      await vi.advanceTimersByTimeAsync(2_000)
      return payloads
    }
    await expect.poll(isRenewed, { interval: 2_000 }).toEqual(['', ''])
    vi.useRealTimers()
    expect(String(warn.mock.calls)).not.toContain('client.query()')
  })

  it('are no longer waited for after a close, which is no failure of a check under way', async () => {
    await using database = await testDatabase()
    await using proxy = await PostgresProxy.open(database.directUrl)
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const postgres = await openPostgres(database.url, { directUrl: proxy.url, onError })
    const payloads: string[] = []
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    postgres.listen('sample_changes', (payload) => payloads.push(payload))
    await expect.poll(() => payloads).toEqual([''])

    proxy.silence()
    await vi.advanceTimersByTimeAsync(2_000)
    vi.useRealTimers()
    await postgres.close()

    expect(errors).toEqual([])
  })

  it('need a direct connection', async () => {
    await using database = await testDatabase()
    const postgres = await openPostgres(database.url)

    expect(postgres.listen('sample_changes', () => undefined)).toBe(false)

    await postgres.close()
  })
})
