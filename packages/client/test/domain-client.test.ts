import { expect, test } from 'vitest'
import { DomainClient } from '../src/domain-client.ts'
import { ProblemError } from '../src/responses.ts'

/** A client whose requests get these statuses of change 7 in turn; the last one repeats. */
function createClient(statuses: string[]) {
  const paths: string[] = []
  const waits: number[] = []
  const client = new DomainClient({
    baseUrl: 'http://127.0.0.1/prefix/',
    credentials: { token: 'ds_token' },
    fetch: async (request) => {
      paths.push(new URL(request.url).pathname)
      const status = statuses[Math.min(paths.length, statuses.length) - 1]
      if (status) return Response.json({ id: 7, status })
      const problem = { status: 404, code: 'change_not_found', detail: 'No change 7' }
      return Response.json(problem, { status: 404 })
    },
    sleep: async (milliseconds) => void waits.push(milliseconds),
  })
  return { client, paths, waits }
}

test('waiting for a change polls until it has an outcome', async () => {
  const { client, paths, waits } = createClient(['queued', 'sending', 'refused'])

  const change = await client.waitForChange(7)

  expect(change.status).toBe('refused')
  expect(paths).toEqual(Array(3).fill('/prefix/api/changes/7'))
  expect(waits).toEqual([2000, 2000])
})

test('waiting for a change that does not exist fails with the problem', async () => {
  const { client } = createClient([])

  const failure = await client.waitForChange(7).catch((error) => error)

  expect(failure).toBeInstanceOf(ProblemError)
  expect(failure).toMatchObject({ code: 'change_not_found', status: 404 })
})
