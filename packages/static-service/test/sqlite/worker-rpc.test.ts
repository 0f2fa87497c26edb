import { expect, test } from 'vitest'
import { WorkerRpc } from '../../src/sqlite/worker-rpc.ts'

type Tasks = { ask: (input: null) => string }

const script = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`)

test('a thread that breaks down fails what it was asked, and all that it is asked later', async () => {
  const thread = new WorkerRpc<Tasks>(script('throw new Error("broken")'), null)

  const first = await thread.ask('ask', null).catch(String)
  const second = await thread.ask('ask', null).catch(String)

  expect([first, second]).toEqual(['Error: broken', 'Error: broken'])
  expect(() => thread.check()).toThrow('broken')
  await thread.close()
})

test('a thread that ends by itself fails what it was asked', async () => {
  const thread = new WorkerRpc<Tasks>(script('process.exit(0)'), null)

  const answer = await thread.ask('ask', null).catch(String)

  expect(answer).toBe('Error: a thread of the catalog has ended')
})
