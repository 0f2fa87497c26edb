import {
  DatabaseFullError,
  DatabaseUnavailableError,
  storageFailure,
} from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { fromPlain, toPlain, WorkerRpc } from '../../src/sqlite/worker-rpc.ts'

type Methods = { ask: (input: null) => string }

const script = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`)

test('a thread that throws fails its pending calls and all later ones', async () => {
  const thread = new WorkerRpc<Methods>(script('throw new Error("broken")'), null)

  const first = await thread.ask('ask', null).catch(String)
  const second = await thread.ask('ask', null).catch(String)

  expect([first, second]).toEqual(['Error: broken', 'Error: broken'])
  expect(() => thread.check()).toThrow('broken')
  await thread.close()
})

test('a thread that exits fails its pending calls', async () => {
  const thread = new WorkerRpc<Methods>(script('process.exit(0)'), null)

  const answer = await thread.ask('ask', null).catch(String)

  expect(answer).toBe('Error: a worker thread has ended')
})

test('a thread starts with the first call, and closing one that never started does nothing', async () => {
  const thread = new WorkerRpc<Methods>(script('throw new Error("started")'), null)

  await thread.close()

  expect(() => thread.check()).not.toThrow()
  await expect(thread.ask('ask', null)).rejects.toThrow('started')
})

test('failures of storage keep their class across threads, and no other error gets one', () => {
  const across = (error: unknown) => fromPlain(structuredClone(toPlain(error)))
  const failed = (code: string) => storageFailure(Object.assign(new Error('failed'), { code }))

  expect(across(failed('SQLITE_IOERR_FSYNC'))).toBeInstanceOf(DatabaseUnavailableError)
  expect(across(failed('SQLITE_FULL'))).toBeInstanceOf(DatabaseFullError)
  expect(across(new DatabaseUnavailableError(new Error('replaced')))).toBeInstanceOf(
    DatabaseUnavailableError,
  )
  expect(across(failed('SQLITE_CONSTRAINT'))).toMatchObject({ code: 'SQLITE_CONSTRAINT' })
})
