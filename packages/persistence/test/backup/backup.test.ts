import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { Repository } from '../../src/backup/repository.ts'
import {
  contentsOf,
  databaseName,
  digestOf,
  fill,
  makeFolder,
  openInFolder,
  runBackup,
  runRestore,
} from '../support/archived-service.ts'

const small = [Buffer.alloc(0), Buffer.from('one'), randomBytes(32_768)]
const large = [randomBytes(32_769), randomBytes(2_500_000)]

async function makeStore(contents = [...small, ...large]) {
  const outside = makeFolder()
  const store = await openInFolder(join(outside, 'data'))
  await fill(store, 3, contents)
  return { outside, store, backups: join(outside, 'backups'), copy: join(outside, 'copy') }
}

const fileOf = (folder: string, content: Buffer) =>
  join(folder, 'blobs', digestOf(content).slice(0, 2), digestOf(content))

test('what was backed up is restored elsewhere, private files private', async () => {
  const { store, backups, copy } = await makeStore()
  const blobs = new Map<string, Buffer>()

  const made = await runBackup(store, backups, { verify: true })
  await runRestore({ dataDir: copy, blobs }, backups, { verify: true })

  const total = [...small, ...large].reduce((sum, { length }) => sum + length, 0)
  expect(made.snapshot.manifest.blobs).toEqual({ count: 5, bytes: total })
  expect(await contentsOf(await openInFolder(copy))).toEqual(await contentsOf(store))
  expect(blobs).toEqual(store.blobs)
  expect(fs.readFileSync(join(copy, 'users.json'), 'utf8')).toBe('["adam"]')
  const { folder } = made.snapshot
  for (const name of fs.readdirSync(folder))
    expect([name, fs.statSync(join(folder, name)).mode & 0o777]).toEqual([name, 0o600])
  expect(fs.statSync(join(copy, 'users.json')).mode & 0o777).toBe(0o600)
})

test('a further backup copies only the blobs that the folder lacks, and each is restored by itself', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  const before = fs.statSync(fileOf(backups, large[0] ?? Buffer.alloc(0)))
  const opened: string[] = []
  const { source } = store
  const counted = {
    ...store,
    source: {
      ...source,
      read: (work: Parameters<typeof source.read>[0]) =>
        source.read({
          ...work,
          blobs: (open) =>
            work.blobs((digest) => {
              opened.push(digest)
              return open(digest)
            }),
        }),
    },
  }

  await runBackup(counted, backups)

  expect(opened).toEqual([])
  expect(fs.statSync(fileOf(backups, large[0] ?? Buffer.alloc(0))).ino).toBe(before.ino)
  const [first] = fs.readdirSync(join(backups, 'snapshots')).sort()
  fs.rmSync(join(backups, 'snapshots', first ?? ''), { recursive: true })
  const blobs = new Map<string, Buffer>()
  await runRestore({ dataDir: copy, blobs }, backups, { verify: true })
  expect(blobs.size).toBe(5)
})

test('blobs that no backup needs any more, after one was removed by hand, go with the next pruning', async () => {
  const { store, backups } = await makeStore()
  const { snapshot } = await runBackup(store, backups)
  const other = await openInFolder(makeFolder())
  await fill(other, 0, [small[1] ?? Buffer.alloc(0), large[1] ?? Buffer.alloc(0)])
  await runBackup(other, backups)
  fs.rmSync(snapshot.folder, { recursive: true })

  using repository = await Repository.openWriter(backups, 'sample')
  await repository.keepNewest(14)

  expect((await repository.snapshots()).length).toBe(1)
  for (const content of [small[1], large[1]])
    expect(repository.has({ digest: digestOf(content ?? ''), size: content?.length ?? 0 })).toBe(true)
  for (const content of [small[2], large[0]])
    expect(repository.has({ digest: digestOf(content ?? ''), size: content?.length ?? 0 })).toBe(false)
})

test('an interrupted backup is no backup, and the next one goes on where it stopped', async () => {
  const { store, backups, copy } = await makeStore()
  const controller = new AbortController()
  const { source } = store
  const interrupted = {
    ...store,
    source: {
      ...source,
      read: (work: Parameters<typeof source.read>[0]) =>
        source.read({
          ...work,
          blobs: (open) =>
            work.blobs(async (digest) => {
              if (digest === digestOf(large[1] ?? '')) controller.abort(new Error('stopped'))
              return open(digest)
            }),
        }),
    },
  }

  await expect(runBackup(interrupted, backups, { signal: controller.signal })).rejects.toThrow('stopped')
  await expect(runRestore({ dataDir: copy }, backups)).rejects.toThrow('no finished backup')
  await runBackup(store, backups)

  expect(fs.readdirSync(join(backups, 'snapshots')).filter((name) => name.endsWith('.partial'))).toEqual([])
  await runRestore({ dataDir: copy }, backups, { verify: true })
})

test('damaged blobs are named with their files, and left out on request', async () => {
  const { store, backups, copy } = await makeStore()
  store.blobs.delete(digestOf(small[1] ?? ''))
  store.blobs.set(digestOf(large[0] ?? ''), Buffer.alloc(7))
  store.blobs.set(digestOf(large[1] ?? ''), Buffer.alloc(2_500_000))

  const refused = runBackup(store, backups)

  await expect(refused).rejects.toThrow('3 contents are damaged')
  await expect(refused).rejects.toThrow(`file 2: its content ${digestOf(small[1] ?? '')} is missing`)
  await expect(refused).rejects.toThrow(`${digestOf(large[0] ?? '')} has 7 bytes instead of 32769`)
  await expect(refused).rejects.toThrow(`${digestOf(large[1] ?? '')} has been altered`)
  const { damages, snapshot } = await runBackup(store, backups, { skipDamaged: true })
  expect(await damages.describe('damaged', snapshot)).toContain('3 damaged:')
  const blobs = new Map<string, Buffer>()
  const restored = await runRestore({ dataDir: copy, blobs }, backups)
  expect(blobs.size).toBe(2)
  expect(restored.damages.all).toHaveLength(3)
})

test('a backup that skips damaged blobs is none if no blob is left, while one without blobs is', async () => {
  const { store, outside } = await makeStore(large)
  store.blobs.clear()
  const empty = await makeStore([])

  const refused = runBackup(store, join(outside, 'refused'), { skipDamaged: true })

  await expect(refused).rejects.toThrow('2 contents are damaged')
  const { snapshot } = await runBackup(empty.store, empty.backups, { skipDamaged: true })
  expect(snapshot.manifest.blobs.count).toBe(0)
})

test('a backup that was altered later is refused; only --verify reads the bytes of all blobs', async () => {
  const { store, backups, copy } = await makeStore()
  const { snapshot } = await runBackup(store, backups)
  fs.writeFileSync(fileOf(backups, large[0] ?? Buffer.alloc(0)), Buffer.alloc(32_769))
  const db = new DatabaseSync(join(backups, 'blobs.sqlite'))
  db.prepare('update blobs set bytes = ? where length(bytes) = 3').run(Buffer.from('ONE'))
  db.close()

  const refused = runRestore({ dataDir: copy }, backups, { verify: true })

  await expect(refused).rejects.toThrow('2 contents are damaged')
  await expect(refused).rejects.toThrow(`${digestOf('one')} has been altered`)
  // The next backup that reads every byte replaces them.
  await runBackup(store, backups, { verify: true })
  await runRestore({ dataDir: copy }, backups, { verify: true })
  fs.appendFileSync(join(snapshot.folder, 'items.ndjson.zst'), 'x')
  fs.rmSync(join(backups, 'snapshots', fs.readdirSync(join(backups, 'snapshots')).sort()[1] ?? ''), {
    recursive: true,
  })
  await expect(runRestore({ dataDir: `${copy}-2` }, backups)).rejects.toThrow('has been altered')
})

test('a restore compares the sizes of all blobs before it writes anything, also without --verify', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  fs.truncateSync(fileOf(backups, large[0] ?? Buffer.alloc(0)), 7)
  using db = new DatabaseSync(join(backups, 'blobs.sqlite'))
  db.prepare('update blobs set bytes = ? where length(bytes) = 3').run(Buffer.from('on'))

  const refused = runRestore({ dataDir: copy }, backups)

  await expect(refused).rejects.toThrow('2 contents are damaged')
  await expect(refused).rejects.toThrow(`${digestOf('one')} has 2 bytes instead of 3`)
  expect(fs.existsSync(copy)).toBe(false)
})

test('a restore that finds damage only while it writes fails, and is unfinished', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  const remove = () => fs.rmSync(fileOf(backups, large[0] ?? Buffer.alloc(0)), { force: true })

  const refused = runRestore({ dataDir: copy, onRows: remove }, backups)

  await expect(refused).rejects.toThrow('1 contents are damaged')
  expect(fs.existsSync(join(copy, 'restore.partial'))).toBe(true)
})

test('where the database of small blobs is missing, the large ones are restored', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  fs.rmSync(join(backups, 'blobs.sqlite'))

  const blobs = new Map<string, Buffer>()

  await expect(runRestore({ dataDir: copy }, backups)).rejects.toThrow('3 contents are damaged')
  await runRestore({ dataDir: copy, blobs }, backups, { skipDamaged: true })

  expect([...blobs.keys()].sort()).toEqual(large.map(digestOf).sort())
})

test('a backup with --verify reads back what it has written', async () => {
  const content = large[0] ?? Buffer.alloc(0)
  const { store, backups } = await makeStore([content])
  const alter = () => fs.writeFileSync(fileOf(backups, content), Buffer.alloc(content.length))

  const refused = runBackup(store, backups, { verify: true, onBlob: alter })

  await expect(refused).rejects.toThrow(`${digestOf(content)} has been altered`)
})

test('nothing is overwritten: neither other files by a backup, nor a data directory by a restore', async () => {
  const { store, backups, outside } = await makeStore()
  await runBackup(store, backups)

  await expect(runBackup(store, outside)).rejects.toThrow('There is something else in')
  await expect(runRestore({ dataDir: join(outside, 'data') }, backups)).rejects.toThrow('is not empty')
  await expect(Repository.openWriter(backups, 'another')).rejects.toThrow(
    'This is a backup of the sample, not of the another',
  )
  using writer = await Repository.openWriter(backups, 'sample')
  await expect(Repository.openWriter(backups, 'sample')).rejects.toThrow('Another backup into')
  expect(writer.folder).toBe(backups)
})

test('a restore into a folder that was interrupted is known as unfinished, and is continued', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  const controller = new AbortController()
  const stop = (table: string) => table === 'pages' && controller.abort(new Error('stopped'))

  const first = runRestore({ dataDir: copy, onRows: stop }, backups, { signal: controller.signal })
  await expect(first).rejects.toThrow('stopped')
  const left = fs.readdirSync(copy).sort()
  await runRestore({ dataDir: copy }, backups)

  expect(left).toEqual(['lock', 'restore.partial', databaseName])
  expect(fs.readdirSync(copy).sort()).toEqual(['lock', databaseName, 'users.json'])
  expect(await contentsOf(await openInFolder(copy))).toEqual(await contentsOf(store))
})

test('an interrupted restore is continued with no other backup, and keeps the users added since', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  const fail = () => {
    throw new Error('stopped')
  }
  await expect(runRestore({ dataDir: copy, onRows: fail }, backups)).rejects.toThrow('stopped')
  const later = join(copy, '../later')
  await runBackup(store, later)
  fs.writeFileSync(join(copy, 'users.json'), '["eve"]')

  await expect(runRestore({ dataDir: copy }, later)).rejects.toThrow('Another backup was being')
  await runRestore({ dataDir: copy }, backups)

  expect(fs.readFileSync(join(copy, 'users.json'), 'utf8')).toBe('["eve"]')
  expect(await contentsOf(await openInFolder(copy))).toEqual(await contentsOf(store))
})

test('what root restores into a new volume belongs to the owner of the data directory', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  const found = join(copy, 'lost+found')
  fs.mkdirSync(found, { recursive: true })
  const before = fs.statSync(found).uid
  const uid = process.getuid?.() === 0 ? 1000 : fs.statSync(copy).uid
  fs.chownSync(copy, uid, fs.statSync(copy).gid)

  await runRestore({ dataDir: copy }, backups)

  const names = fs.readdirSync(copy).filter((name) => name !== 'lost+found')
  expect(names.filter((name) => fs.statSync(join(copy, name)).uid !== uid)).toEqual([])
  expect([names.length, fs.statSync(found).uid]).toEqual([3, before])
})

test('of the backups only the newest are kept, with the blobs that they need', async () => {
  const { store, backups, copy } = await makeStore()
  await runBackup(store, backups)
  const other = await openInFolder(makeFolder())
  await fill(other, 0, [large[1] ?? Buffer.alloc(0)])
  const names = [await runBackup(other, backups), await runBackup(other, backups)].map(
    ({ snapshot }) => snapshot.folder,
  )

  {
    using repository = await Repository.openWriter(backups, 'sample')
    for (const _ of [1, 2]) await repository.keepNewest(2)
    expect((await repository.snapshots()).map(({ folder }) => folder)).toEqual(names)
  }

  expect(fs.existsSync(fileOf(backups, large[0] ?? Buffer.alloc(0)))).toBe(false)
  const blobs = new Map<string, Buffer>()
  await runRestore({ dataDir: copy, blobs }, backups, { verify: true })
  expect(blobs.size).toBe(1)
})
