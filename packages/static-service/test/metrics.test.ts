import { renameSync } from 'node:fs'
import { expect, test } from 'vitest'
import { databaseFile, openDatabase } from '../src/catalog/sqlite/sqlite-catalog.ts'
import { boundary, type Service, start } from './support/start.ts'

/** What the service tells now: each figure by its name and labels as they are written. */
async function scrape(service: Service): Promise<Record<string, number>> {
  const { bytes } = await service.call('GET', '/metrics', {
    user: 'nobody',
    headers: { authorization: 'Bearer metrics-token-of-tests' },
  })
  const lines = bytes.toString().split('\n')
  return Object.fromEntries(
    lines
      .filter((line) => line && !line.startsWith('#'))
      .map((line) => {
        const space = line.lastIndexOf(' ')
        return [line.slice(0, space), Number(line.slice(space + 1))]
      }),
  )
}

test('files and bytes are told as they come and go', async () => {
  await using service = await start()
  const before = await scrape(service)
  await service.put('a', 'four')
  await service.put('b', 'four')

  const after = await scrape(service)

  expect(before).toMatchObject({ static_files: 0, static_file_bytes: 0, static_stored_bytes: 0 })
  expect(after).toMatchObject({ static_files: 2, static_file_bytes: 8, static_stored_bytes: 4 })
})

test('memory tells what it had, what it had not, and what it takes', async () => {
  await using service = await start()
  await service.put('a.bin', Buffer.alloc(1000))
  for (let time = 0; time < 3; time += 1) await service.call('GET', '/static/a.bin')
  for (let time = 0; time < 3; time += 1) await service.call('GET', '/api/files/a.bin')

  const figures = await scrape(service)

  expect(figures).toMatchObject({
    'static_memory_hits_total{kept="rows"}': 6,
    'static_memory_misses_total{kept="rows"}': 1,
    'static_memory_hits_total{kept="contents"}': 2,
    'static_memory_misses_total{kept="contents"}': 1,
    'static_memory_hits_total{kept="forms"}': 0,
  })
  expect(figures['static_memory_bytes{kept="contents"}']).toBeGreaterThanOrEqual(1000)
})

test('no label names a file or a person', async () => {
  await using service = await start()
  await service.put('secret/plan.txt')
  await service.call('GET', '/static/secret/plan.txt')
  await service.call('GET', '/static/secret/missing.txt')

  const names = Object.keys(await scrape(service)).join('\n')

  expect(names).toContain('route="/static/*",status="404"')
  expect(names).not.toMatch(/secret|plan|admin/)
})

test('a file that is arriving is told of until it is there or broken off', async () => {
  await using service = await start()
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\nbytes`
  const socket = await service.begin(head, 100_000)

  await expect.poll(async () => (await scrape(service)).static_uploads_in_flight).toBe(1)
  socket.destroy()
  await expect.poll(async () => (await scrape(service)).static_uploads_in_flight).toBe(0)
})

test('changes that wait for the database are told of', async () => {
  await using service = await start()
  const other = openDatabase(databaseFile(service.dataDir))
  other.database.exec('begin immediate')

  const uploads: Promise<unknown>[] = []
  // Those that arrive together share a commit: one more is sent until two wait for the one at the database.
  await expect
    .poll(async () => {
      uploads.push(service.put(`file-${uploads.length}`))
      return scrape(service)
    })
    .toSatisfy(({ static_changes_waiting: waiting = 0 }) => waiting >= 2)
  other.database.exec('rollback')
  await other.close()
  await Promise.all(uploads)
  expect(await scrape(service)).toMatchObject({ static_changes_waiting: 0 })
})

test('every figure that waits for something is there, and 0 while nothing waits', async () => {
  await using service = await start()

  expect(await scrape(service)).toMatchObject({
    static_questions_waiting: 0,
    static_compressions_waiting: 0,
    auth_hashes_waiting: 0,
  })
})

test('a full disk is told of from the start, so that its first time is a change', async () => {
  await using service = await start()

  expect(await scrape(service)).toMatchObject({
    'http_problems_total{code="insufficient_storage"}': 0,
  })
})

test('a figure that cannot be read hides no other', async () => {
  await using service = await start()
  const moved = `${service.dataDir}-moved`
  renameSync(service.dataDir, moved)

  const figures = await scrape(service)

  renameSync(moved, service.dataDir)
  expect(figures.data_disk_free_bytes).toBeNaN()
  expect(figures.auth_hashes_waiting).toBe(0)
})
