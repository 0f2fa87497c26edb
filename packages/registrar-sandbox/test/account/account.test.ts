import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeFolder, start } from '../support/start.ts'

const name = 'quietharbour.org'

test('writes survive a restart', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'state.json')
  const first = await start({ file })
  await first.setHosts(name, [{ HostName: '@', RecordType: 'TXT', Address: 'kept' }])
  await first.sandbox.addDomain({ name: 'added.com' })
  await first.sandbox.removeDomain('farwood.dev')
  const before = first.sandbox.zone(name)
  await first.sandbox.close()
  // As a file of an earlier version.
  await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), owner: 'tester' }))

  await using second = await start({ file })

  const farwood = await second.call('domains.getInfo', { DomainName: 'farwood.dev' })
  expect(second.sandbox.zone(name)).toEqual(before)
  expect(second.sandbox.zone('added.com').hosts).toEqual([])
  expect(farwood.errors[0]?.[0]).toBe('2030166')
})

test('a write is in the file before its answer, and no temporary file remains', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'state.json')
  await using registrar = await start({ file })

  await Promise.all(
    ['one', 'two', 'three'].map((Address) => registrar.setHosts(name, [{ HostName: '@', RecordType: 'TXT', Address }])),
  )

  const last = registrar.sandbox.zone(name).hosts[0]?.address
  expect(await readFile(file, 'utf8')).toContain(`"address": "${last}"`)
  expect(await readdir(folder.path)).toEqual(['state.json'])
})

test('ids are not reused after a restart', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'state.json')
  const first = await start({ file })
  await first.setHosts(name, [{ HostName: 'a', RecordType: 'TXT', Address: 'a' }])
  const before = first.sandbox.zone(name).hosts[0]?.hostId ?? 0
  await first.sandbox.close()

  await using second = await start({ file })
  await second.setHosts(name, [{ HostName: 'b', RecordType: 'TXT', Address: 'b' }])

  expect(second.sandbox.zone(name).hosts[0]?.hostId).toBeGreaterThan(before)
})

test('an invalid state file prevents the start and stays unchanged', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'state.json')
  await writeFile(file, '{"version":2}')

  const outcome = start({ file })

  await expect(outcome).rejects.toThrow(`Cannot read the state in ${file}`)
  expect(await readFile(file, 'utf8')).toBe('{"version":2}')
})

test('the panel cannot edit an unknown domain', async () => {
  await using registrar = await start()

  const edit = () => registrar.sandbox.setZone('not-ours.com', { emailType: 'MX' })

  expect(edit).toThrow('The account has no domain not-ours.com')
})

test('an edit in the panel changes only the given fields', async () => {
  await using registrar = await start()
  const before = registrar.sandbox.zone('alder-and-finch.com')

  await registrar.sandbox.setZone('alder-and-finch.com', { emailType: 'OX' })

  const after = registrar.sandbox.zone('alder-and-finch.com')
  expect(after).toEqual({ ...before, emailType: 'OX' })
})
