import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { password } from '../../../../test/support/test-users.ts'
import { FolderBlobStore } from '../../src/blobs/disk/folder-blob-store.ts'
import { check } from '../../src/maintenance/files-command.ts'
import { openS3Contents } from '../support/s3/s3-contents.ts'
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { filesBelow, type Service, start } from '../support/start.ts'
import { digestOf, storedIn } from '../support/stored-contents.ts'
import { tus, urlOf } from '../support/tus.ts'

const megabyte = 1_048_576

// Each hands its body a disk; where none can be had, the message says that nothing was tested.
const onSmallDisk = (
  name: string,
  body: (service: Service, disk: SmallDisk) => Promise<void>,
  { megabytes = 24, inodes, env = {} }: { megabytes?: number; inodes?: number; env?: Record<string, string> } = {},
) =>
  test(name, async () => {
    using disk = mountSmallDisk(megabytes, inodes)
    expect(disk === undefined || disk.folder !== '').toBe(true)
    if (!disk) return
    await using service = await start({ dataDir: join(disk.folder, 'data'), env })
    await body(service, disk)
    // Contents are removed after the response.
    await expect.poll(() => check({ DATA_DIR: service.dataDir })).toMatchObject({ damages: [], orphans: [] })
  })

onSmallDisk(
  'a full disk refuses uploads, keeps all it had, and takes them again once there is space',
  async (service) => {
    const stored = await fillWithFiles(service)

    const refused = await service.put('one-more', randomBytes(2 * megabyte))
    const batch = await service.send('upload/batch', [
      { name: 'files', content: 'small', filename: 'small' },
      { name: 'files', content: randomBytes(8 * megabyte), filename: 'large' },
    ])

    expect([refused.status, refused.body.code]).toEqual([507, 'insufficient_storage'])
    expect([batch.status, batch.body.code]).toEqual([507, 'insufficient_storage'])
    const { body } = await service.call('GET', '/api/files')
    expect(body.files?.map(({ path }) => path)).toEqual([...stored.keys()])
    for (const [path, content] of stored) {
      const { bytes } = await service.call('GET', `/static/${path}`)
      expect(bytes.equals(content)).toBe(true)
    }
    await expect.poll(() => filesBelow(join(service.dataDir, 'tmp'))).toEqual([])

    const [first = '', second = ''] = stored.keys()
    const deleted = [
      await service.call('DELETE', `/api/files/${first}`),
      await service.call('DELETE', `/api/files/${second}`),
    ]
    expect(deleted.map(({ status }) => status)).toEqual([204, 204])
    await expect.poll(async () => (await service.put(first, randomBytes(megabyte))).status).toBe(201)
  },
)

onSmallDisk(
  'a disk that can take no further files refuses large ones, and takes them again once some are deleted',
  async (service, disk) => {
    const put = async (name: string) => (await service.put(name, randomBytes(40_000))).status
    let count = 0
    while ((await put(`many/${count}`)) === 201) count += 1
    writeFileSync(join(disk.folder, 'of somebody else'), '') // As many as the refused upload had.

    const health = await service.call('GET', '/health')
    const removed = await service.call('POST', '/api/files/delete', { json: { prefix: 'many/' } })

    expect([removed.body.files_deleted, health.body.status]).toEqual([count, 'degraded'])
    await expect.poll(() => put('after')).toBe(201)
  },
  { megabytes: 100, inodes: 250 },
)

onSmallDisk(
  'as long as a large file is taken, the disk is healthy, to the last file that is not reserved',
  async (service, disk) => {
    await service.call('GET', '/health') // It has a file of its own.
    for (let count = 0; statfsSync(disk.folder).ffree > 64; count += 1)
      writeFileSync(join(disk.folder, `of somebody else ${count}`), '')
    const putAndAsk = async (name: string) => {
      const health = await service.call('GET', '/health')
      return [health.body.status, (await service.put(name, randomBytes(40_000))).status]
    }

    expect([await putAndAsk('last'), await putAndAsk('one-more')]).toEqual([
      ['ok', 201],
      ['degraded', 507],
    ])
  },
  { megabytes: 100, inodes: 600 },
)

onSmallDisk(
  'small contents, which are no files, neither need one nor give one: a disk without any takes them, and keeps their past',
  async (service, disk) => {
    for (const content of ['first', 'second']) await service.put('small', content)
    for (let count = 0; statfsSync(disk.folder).ffree > 0; count += 1)
      writeFileSync(join(disk.folder, `of somebody else ${count}`), '')

    const large = await service.put('large', randomBytes(40_000))
    const small = await service.put('other', 'third')
    const { body } = await service.call('GET', '/api/versions/stats')

    expect([large.body.code, small.status, body.past_size]).toEqual(['insufficient_storage', 201, 5])
  },
  { megabytes: 100, inodes: 250, env: { KEEP_HISTORY_DAYS: '30' } },
)

onSmallDisk('a disk that fills up under a running upload refuses it and leaves nothing of it', async (service) => {
  const { status, body } = await service.put('large', randomBytes(40 * megabyte))

  expect([status, body.code]).toEqual([507, 'insufficient_storage'])
  await expect.poll(() => service.storedContents()).toEqual([])
  const small = await service.put('small', 'x')
  expect(small.status).toBe(201)
})

onSmallDisk(
  'a disk without a single byte left is a refusal for the database too, and no end of the service',
  async (service, disk) => {
    await service.put('before', 'content')
    disk.fill()

    const refused = await recordUntilRefused(service)
    const upload = await service.put('during', 'content')

    expect(refused).toEqual([507, 'insufficient_storage'])
    expect([upload.status, upload.body.code]).toEqual([507, 'insufficient_storage'])
    const served = await service.call('GET', '/static/before')
    expect(served.bytes.toString()).toBe('content')
    const health = await service.call('GET', '/health')
    expect([health.status, health.body.status]).toEqual([200, 'degraded'])
    disk.fill()
    const removed = await service.call('DELETE', '/api/files/before')
    const gone = await service.call('GET', '/static/before')
    expect([removed.status, gone.status]).toEqual([204, 404])

    disk.relieve()
    const after = await service.put('after', 'content')
    expect(after.status).toBe(201)
  },
)

onSmallDisk(
  'a change is answered as it happened where the room for deletions cannot be reserved again',
  async (service, disk) => {
    const reserve = join(service.dataDir, 'disk-reserve')
    await service.put('before', randomBytes(megabyte))
    await expect.poll(() => isLogEmptied(service)).toBe(true)
    disk.fill()
    await service.call('DELETE', '/api/files/before')
    const isReleased = !existsSync(reserve)
    disk.relieve()
    mkdirSync(reserve) // Neither written nor removed as a file.

    const { status } = await service.put('after', 'content')

    expect([isReleased, status]).toEqual([true, 201])
  },
)

onSmallDisk(
  'a disk that only the history fills is healthy, and makes room for uploads: the oldest goes first',
  async (service, disk) => {
    const statuses = new Set<number>()
    for (let at = 0; at < 40; at += 1) {
      statuses.add((await service.put('again', randomBytes(megabyte))).status)
    }
    await service.put('deleted', randomBytes(megabyte))
    const health = await service.call('GET', '/health')
    // With an empty log the deletion below needs the room that is reserved for it, and the upload has none to spare.
    await expect.poll(() => isLogEmptied(service)).toBe(true)
    disk.fill()
    const removed = await service.call('DELETE', '/api/files/deleted')

    const large = await service.put('large', randomBytes(4 * megabyte))

    expect(large.status).toBe(201)
    expect([...statuses].toSorted()).toEqual([200, 201])
    expect(health.body.status).toBe('ok')
    expect(removed.status).toBe(204)
    const { body } = await service.call('GET', '/api/versions/stats')
    expect(body).toMatchObject({ total_files: 2, stored_size: 5 * megabyte })
  },
  { env: { KEEP_HISTORY_DAYS: '30' } },
)

onSmallDisk(
  'an upload that is refused although all history would go drops none of it',
  async (service, disk) => {
    for (const byte of [1, 2]) await service.put('again', Buffer.alloc(60_000, byte))
    disk.fill()

    const refused = await service.put('other', randomBytes(megabyte))

    const { body } = await service.call('GET', '/api/versions/stats')
    expect([refused.status, body.past_size]).toEqual([507, 60_000])
  },
  { env: { KEEP_HISTORY_DAYS: '30' } },
)

onSmallDisk('what takes rights away works on a disk that is full to the last byte', async (service, disk) => {
  await service.put('shared/file')
  const login = { username: 'editor', password }
  const session = await service.call('POST', '/api/auth/login', { json: login, user: 'nobody' })
  const own = { headers: { authorization: `Bearer ${session.body.access_token}` }, user: 'nobody' }
  const link = await service.call('POST', '/api/links', { json: { path: 'shared/' } })
  const token = await service.call('POST', '/api/tokens', { json: { name: 'one' } })
  await service.close()
  await using again = await start({ dataDir: service.dataDir })
  disk.fill()

  const answers = [
    await again.call('PUT', '/api/access/shared/', { json: { public: false } }),
    await again.call('DELETE', `/api/links/${link.body.id}`),
    await again.call('POST', '/api/auth/logout', own),
    await again.call('DELETE', `/api/tokens/${token.body.id}`),
  ]

  expect(answers.map(({ status }) => status)).toEqual([200, 204, 204, 204])
  expect((await again.call('GET', '/static/shared/file', { user: 'nobody' })).status).toBe(404)
  expect((await again.call('GET', '/api/auth/me', own)).status).toBe(401)
})

onSmallDisk('a service that was killed starts on a disk that is full to the last byte', async (service, disk) => {
  await service.put('kept', 'content')
  await tus(service).create('unfinished', 5)
  for (const name of ['static-service', 'contents', 'uploads'])
    await expect.poll(() => isLogEmptied(service, `${name}.sqlite`)).toBe(true)
  const dataDir = join(disk.folder, 'killed')
  cpSync(service.dataDir, dataDir, { recursive: true })
  disk.fill()

  await using again = await start({ dataDir })

  expect((await again.call('GET', '/static/kept')).bytes.toString()).toBe('content')
  expect((await again.call('DELETE', '/api/files/kept')).status).toBe(204)
})

onSmallDisk(
  'unfinished uploads that are deleted or expire give their bytes back on a disk that is full to the last byte',
  async (service, disk) => {
    const { create, patch, send } = tus(service)
    const begin = async (path: string) => {
      const url = urlOf(await create(path, 3 * megabyte))
      await patch(url, 0, randomBytes(2 * megabyte))
      return url
    }
    const [first, second] = [await begin('deleted'), await begin('expired')]
    const files = () => filesBelow(join(service.dataDir, 'uploads'))
    await expect.poll(() => isLogEmptied(service)).toBe(true)
    disk.fill()

    const deleted = await send('DELETE', first)
    const left = files().map((file) => `/api/uploads/${basename(file)}`)
    const uploads = new Sqlite(join(service.dataDir, 'uploads.sqlite'))
    uploads.exec('update uploads set expires_at = 1')
    uploads.pragma('wal_checkpoint(TRUNCATE)')
    uploads.close()
    disk.fill()

    expect([deleted.status, left]).toEqual([204, [second]])
    await expect.poll(files).toEqual([])
  },
)

onSmallDisk(
  'uploads that arrive together drop no more history than they need',
  async (service) => {
    for (let at = 0; at < 110; at += 1) await service.put('again', randomBytes(megabyte))
    const readPastBytes = async () => Number((await service.call('GET', '/api/versions/stats')).body.past_size)
    const before = await readPastBytes()

    const stored = await Promise.all(
      Array.from({ length: 12 }, (_, at) => service.put(`file-${at}`, randomBytes(megabyte))),
    )

    expect(stored.map(({ status }) => status)).toEqual(stored.map(() => 201))
    expect(before).toBeGreaterThan(60 * megabyte)
    // 12 MB are needed, and each may end within a file.
    expect(before - (await readPastBytes())).toBeLessThan(30 * megabyte)
  },
  { megabytes: 96, env: { KEEP_HISTORY_DAYS: '30' } },
)

onSmallDisk(
  'small files that are deleted make room for files of any size, on a disk of 48 MiB too',
  async (service) => {
    await fillWithSmallFiles(service)

    await service.call('POST', '/api/files/delete', { json: { prefix: '/' } })

    const statusOf = async (bytes: number) => (await service.put(`${bytes}`, randomBytes(bytes))).status
    await expect.poll(() => statusOf(30_000)).toBe(201)
    await expect.poll(() => statusOf(megabyte)).toBe(201)
    await expect.poll(() => statusOf(20 * megabyte)).toBe(201)
    // The last of the deleted contents may be removed after this upload.
    const health = async () => (await service.call('GET', '/health')).body.status
    await expect.poll(health).toBe('ok')
  },
  { megabytes: 48 },
)

onSmallDisk(
  'a directory of thousands of files is deleted on a disk that is full to the last byte',
  async (service, disk) => {
    const names = Array.from({ length: 4000 }, (_, at) => `d/${at % 7}/a rather long name ${at}`)
    for (let from = 0; from < names.length; from += 100) {
      const files = names.slice(from, from + 100).map((filename) => ({ name: 'files', content: filename, filename }))
      expect((await service.send('upload/batch', files)).status).toBe(201)
    }
    disk.fill()

    const { status, body } = await service.call('POST', '/api/files/delete', {
      json: { prefix: 'd/' },
    })

    expect([status, body.files_deleted]).toEqual([200, 4000])
    expect((await service.call('GET', '/api/files/')).body.files).toEqual([])
  },
  { megabytes: 24 },
)

test('a file system that permits access and refuses to write is an unavailable disk', async () => {
  using disk = mountSmallDisk(1)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  const stopped = join(disk.folder, 'writable')
  writeFileSync(stopped, '')
  disk.forbidWrites()
  const dataDir = mkdtempSync(join(tmpdir(), 'static-stopped-'))
  const options = { isReferenced: async () => false, onError: () => undefined }
  const store = await FolderBlobStore.open(dataDir, options)
  const before = store.check()

  rmSync(join(dataDir, 'writable'))
  symlinkSync(stopped, join(dataDir, 'writable'))

  expect([before, store.check()]).toEqual([{ disk: { status: 'ok' } }, { disk: { status: 'unavailable' } }])
  await store.close()
  rmSync(dataDir, { recursive: true })
})

test('a replica reports such a file system too', async () => {
  using disk = mountSmallDisk(1)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  const stopped = join(disk.folder, 'writable')
  writeFileSync(stopped, '')
  disk.forbidWrites()
  await using contents = await openS3Contents()
  const { store } = contents
  const before = store.check().disk

  const file = join(dirname(contents.tmp), 'writable')
  rmSync(file)
  symlinkSync(stopped, file)

  expect([before, store.check().disk]).toEqual([{ status: 'ok' }, { status: 'unavailable' }])
})

test('a content is removed even where the disk has no byte left to record that', async () => {
  using disk = mountSmallDisk(24)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  const dataDir = join(disk.folder, 'data')
  const referenced = new Set<string>()
  const errors: unknown[] = []
  const store = await FolderBlobStore.open(dataDir, {
    isReferenced: async (digest) => referenced.has(digest),
    onError: (error) => errors.push(error),
  })
  const draft = store.draft()
  await draft.write(randomBytes(megabyte))
  await draft.seal()
  const { digest } = await draft.keep()
  referenced.add(digest)
  await draft[Symbol.asyncDispose]()
  await store.putForm(digest, 'br', randomBytes(1000))
  disk.fill()

  referenced.delete(digest)
  store.collect([digest])
  await store.settle()

  expect([storedIn(dataDir), errors]).toEqual([[], []])
  await store.close()
})

/** Whether nobody reads the write-ahead log of the catalog, so that it could be emptied. */
function isLogEmptied({ dataDir }: Service, name = 'static-service.sqlite'): boolean {
  const catalog = new Sqlite(join(dataDir, name))
  const isBusy = catalog.pragma('wal_checkpoint(TRUNCATE)', { simple: true })
  catalog.close()
  return isBusy === 0
}

async function fillWithFiles(service: Service): Promise<Map<string, Buffer>> {
  const stored = new Map<string, Buffer>()
  for (let at = 10; ; at += 1) {
    const content = randomBytes(2 * megabyte)
    const { status } = await service.put(`file-${at}`, content)
    if (status !== 201) return stored
    stored.set(`file-${at}`, content)
  }
}

async function fillWithSmallFiles(service: Service): Promise<void> {
  const content = () => randomBytes(30_000)
  for (let at = 0; ; at += 1) {
    const names = Array.from({ length: 100 }, (_, n) => `${at}/${n}`)
    const files = names.map((filename) => ({ name: 'files', content: content(), filename }))
    if ((await service.send('upload/batch', files)).status !== 201) break
  }
  for (let at = 0; ; at += 1) {
    if ((await service.put(`last/${at}`, content())).status !== 201) return
  }
}

async function recordUntilRefused(service: Service) {
  for (let at = 0; ; at += 1) {
    const json = { version: `${at}`, changelog: randomBytes(30_000).toString('hex') }
    const { status, body } = await service.call('POST', '/api/versions', { json })
    if (status !== 201) return [status, body.code]
  }
}

test.each(['folder', 's3'])('without its folder for temporary files the disk is unavailable: %s', async (form) => {
  await using opened = await openEither(form)

  rmSync(opened.tmp, { recursive: true })

  expect(opened.store.check().disk).toEqual({ status: 'unavailable' })
})

async function openEither(form: string) {
  if (form === 's3') return openS3Contents()
  const dataDir = mkdtempSync(join(tmpdir(), 'static-no-tmp-'))
  const store = await FolderBlobStore.open(dataDir, { isReferenced: async () => false, onError: () => undefined })
  const close = async () => {
    await store.close()
    rmSync(dataDir, { recursive: true })
  }
  return { store, tmp: join(dataDir, 'tmp'), [Symbol.asyncDispose]: close }
}

test('a compressed form drops no history to make room for itself', async () => {
  using disk = mountSmallDisk(24)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  const filler = join(disk.folder, 'filler')
  const store = await FolderBlobStore.open(join(disk.folder, 'data'), {
    isReferenced: async () => true,
    onError: () => undefined,
    dropPast: async () => {
      rmSync(filler)
      return 1
    },
  })
  await using _ = { [Symbol.asyncDispose]: () => store.close() }
  await using draft = store.draft()
  await draft.write(Buffer.from('text'))
  await draft.seal()
  const { digest } = await draft.keep()
  const { bavail, bsize } = statfsSync(disk.folder)
  writeFileSync(filler, Buffer.alloc(bavail * bsize - megabyte))

  const form = store.putForm(digest, 'gzip', Buffer.from('form'))

  await expect(form).rejects.toMatchObject({ status: 507 })
  expect([existsSync(filler), await store.forms(digest)]).toEqual([true, []])
})

test('a content is stored while the history that makes room for it gives up the same content', async () => {
  using disk = mountSmallDisk(24)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  const filler = join(disk.folder, 'filler')
  const store = await FolderBlobStore.open(join(disk.folder, 'data'), {
    isReferenced: async () => false,
    onError: () => undefined,
    dropPast: async () => {
      store.collect([digestOf('again')])
      rmSync(filler)
      return 1
    },
  })
  await using _ = { [Symbol.asyncDispose]: () => store.close() }
  const { bavail, bsize } = statfsSync(disk.folder)
  writeFileSync(filler, Buffer.alloc(bavail * bsize - megabyte))
  await using draft = store.draft()
  await draft.write(Buffer.from('again'))
  await draft.seal()

  const { digest } = await draft.keep()

  expect(store.readNow(digest)?.toString()).toBe('again')
})
