import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DatabaseFullError, DatabaseUnavailableError, storageFailure } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { fromPlain, toPlain, WorkerRpc } from '../../src/sqlite/worker-commits.ts'

type Methods = { ask: (input: null) => string }

const script = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`)

test('a thread that throws fails its calls, and the next call starts another', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'worker-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'thread.mjs')
  writeFileSync(file, 'throw Object.assign(new Error("broken"), { code: "SQLITE_IOERR" })')
  const thread = new WorkerRpc<Methods>(pathToFileURL(file), null)

  const failed = await Promise.allSettled([thread.ask('ask', null), thread.ask('ask', null)])
  const replying =
    "import { parentPort } from 'node:worker_threads'; parentPort.on('message', ({ id }) => parentPort.postMessage({ id, value: 'replied' }))"
  writeFileSync(file, replying)
  const next = await thread.ask('ask', null)

  for (const each of failed) expect(each).toMatchObject({ reason: expect.any(DatabaseUnavailableError) })
  expect(next).toBe('replied')
})

test('a thread that exits fails its pending calls', async () => {
  const thread = new WorkerRpc<Methods>(script('process.exit(0)'), null)

  const answer = await thread.ask('ask', null).catch(String)

  expect(answer).toBe('Error: a worker thread has ended')
})

test('a thread starts with the first call: closing one that never started does nothing, and none starts afterwards', async () => {
  const thread = new WorkerRpc<Methods>(script('throw new Error("started")'), null)

  await thread.close()

  await expect(thread.ask('ask', null)).rejects.toThrow('closed')
})

test('failures of storage keep their class across threads, and no other error gets one', () => {
  const across = (error: unknown) => fromPlain(structuredClone(toPlain(error)))
  const failed = (code: string) => storageFailure(Object.assign(new Error('failed'), { code }))

  expect(across(failed('SQLITE_IOERR_FSYNC'))).toBeInstanceOf(DatabaseUnavailableError)
  expect(across(failed('ERR_WORKER_INIT_FAILED'))).toBeInstanceOf(DatabaseUnavailableError)
  expect(across(failed('SQLITE_FULL'))).toBeInstanceOf(DatabaseFullError)
  expect(across(new DatabaseUnavailableError(new Error('replaced')))).toBeInstanceOf(DatabaseUnavailableError)
  expect(across(failed('SQLITE_CONSTRAINT'))).toMatchObject({ code: 'SQLITE_CONSTRAINT' })
})
