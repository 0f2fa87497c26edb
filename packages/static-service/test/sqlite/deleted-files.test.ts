import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Service, start } from '../support/start.ts'

const statusOf = async ({ port }: Service) => (await fetch(`http://127.0.0.1:${port}/health`)).status

test.each(['static-service.sqlite', 'contents.sqlite'])(
  'after the files of %s were deleted uploads are 503, and health is unavailable',
  async (database) => {
    await using service = await start({ env: {} })
    await service.put('before.txt', 'before')
    const before = await statusOf(service)

    for (const end of ['', '-wal', '-shm']) rmSync(join(service.dataDir, database + end), { force: true })
    const upload = await service.put('after.txt', 'after')

    expect(before).toBe(200)
    expect([upload.status, upload.body.code]).toEqual([503, 'unavailable'])
    await expect.poll(() => statusOf(service)).toBe(503)
  },
)
