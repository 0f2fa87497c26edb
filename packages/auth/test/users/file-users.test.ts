import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, { existsSync, mkdirSync } from 'node:fs'
import { readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FileUsers } from '../../src/users/file-users.ts'
import type { User } from '../../src/users/user.ts'
import { makeFolder, makeUser, readUsers, writeUsers } from '../support/start.ts'

const adam = await makeUser('adam', { role: 'admin' })
const vera = await makeUser('vera', { domains: ['example.com'] })

async function open(text = JSON.stringify({ users: [adam, vera] })) {
  const folder = await makeFolder()
  const file = join(folder.path, 'users.json')
  await writeFile(file, text)
  const reports: string[] = []
  const users = new FileUsers(file, (error) => reports.push(error.message))
  return { folder, file, users, reports, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] }
}

function replaceRead(readFileSync: unknown) {
  Object.assign(fs, { readFileSync })
  syncBuiltinESMExports()
}

const updateUsers = (file: string, change: (users: User[]) => User[]) =>
  new FileUsers(file, () => undefined).update(change)

test.each([
  ['no JSON', '{', 'it is not JSON'],
  ['an empty file', '', 'it is not JSON'],
  ['a bare list', JSON.stringify([adam]), 'must be an object'],
  ['an unknown field', JSON.stringify({ users: [{ ...adam, admin: true }] }), 'admin'],
  ['an unknown field above', JSON.stringify({ users: [adam], version: 1 }), 'version'],
  ['an unknown role', JSON.stringify({ users: [{ ...adam, role: 'root' }] }), 'role'],
  ['a plain password', JSON.stringify({ users: [{ ...adam, password: 'x' }] }), 'PHC'],
  ['a user twice', JSON.stringify({ users: [adam, adam] }), 'twice'],
  ['a bad domain', JSON.stringify({ users: [{ ...adam, domains: ['*'] }] }), 'domain'],
  ['a blank in a name', JSON.stringify({ users: [{ ...adam, username: 'a b' }] }), 'spaces'],
])('a file with %s is not listed or changed, and the reason is said', async (_name, text, reason) => {
  await using opened = await open(text)

  await expect(opened.users.list()).rejects.toThrow(reason)
  await expect(opened.users.update(() => [vera])).rejects.toThrow(reason)

  expect(await readFile(opened.file, 'utf8')).toBe(text)
})

test.each([
  ['an unknown field', { ...adam, admin: true }],
  ['an unknown role', { ...adam, role: 'root' }],
  ['a plain password', { ...adam, password: 'x' }],
  ['the name of another', { ...vera, role: 'admin' }],
])('an entry with %s disables its user, while a removed user is out and others stay', async (_name, entry) => {
  await using opened = await open()
  const edda = await makeUser('edda')
  await opened.users.find('vera')

  await writeUsers(opened.file, [edda, entry, ...(entry.username === 'vera' ? [vera] : [])])

  expect(await opened.users.find('adam')).toBeUndefined()
  expect(await opened.users.find('vera')).toBeUndefined()
  expect(await opened.users.find('edda')).toEqual(edda)
  expect(opened.users.fault).toContain('Cannot use the users file')
  expect(opened.reports).toHaveLength(1)
})

test.each([
  ['an unknown field', { users: [vera], version: 1 }, vera],
  ['no list of users', { people: [vera] }, undefined],
  ['a bare list', [vera], undefined],
])('JSON with %s beside the users removes those that it does not name', async (_name, content, found) => {
  await using opened = await open()
  await opened.users.find('adam')

  await writeFile(opened.file, JSON.stringify(content))

  expect(await opened.users.find('adam')).toBeUndefined()
  expect(await opened.users.find('vera')).toEqual(found)
  expect(opened.users.fault).toBeDefined()
})

test('a missing file has no users, and counts as soon as it is there', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'users.json')
  const users = new FileUsers(file, () => undefined)

  expect(await users.list()).toEqual([])
  expect(await users.find('adam')).toBeUndefined()
  await users.update(() => [adam])

  expect(await users.find('adam')).toEqual(adam)
})

test('a fault quotes no password hash', async () => {
  await using opened = await open(JSON.stringify({ users: [{ ...adam, role: 'root' }] }))

  expect(opened.users.fault).not.toContain('argon2id$')
})

test('a change of the same length is seen at the next look-up', async () => {
  await using opened = await open()
  const roles: (string | undefined)[] = []

  for (const role of ['viewer', 'editor', 'viewer', 'editor'] as const) {
    await writeUsers(opened.file, [{ ...vera, role }])
    roles.push((await opened.users.find('vera'))?.role)
  }

  expect(roles).toEqual(['viewer', 'editor', 'viewer', 'editor'])
})

test('each of several versions that follow at once is seen at the next look-up', async () => {
  await using opened = await open()
  const roles = []

  for (const role of ['admin', 'editor', 'viewer', 'editor'] as const) {
    await writeFile(opened.file, JSON.stringify({ users: [{ ...adam, role }] }))
    for (const _ of [1, 2]) roles.push((await opened.users.find('adam'))?.role)
  }

  expect(roles).toEqual([...['admin', 'admin', 'editor', 'editor'], ...['viewer', 'viewer', 'editor', 'editor']])
})

test('a replaced file is seen at the next look-up', async () => {
  await using opened = await open()

  await writeUsers(`${opened.file}.new`, [vera])
  await rename(`${opened.file}.new`, opened.file)

  expect(await opened.users.find('adam')).toBeUndefined()
})

test('a byte order mark before the JSON is no fault', async () => {
  await using opened = await open(`\ufeff${JSON.stringify({ users: [adam] })}`)

  expect(await opened.users.list()).toEqual([adam])
})

test('while the file is not JSON its last users count, and one report is made', async () => {
  await using opened = await open()
  await opened.users.find('adam')

  await writeFile(opened.file, '{ "users": [')
  const found = [await opened.users.find('adam'), await opened.users.find('vera'), await opened.users.find('adam')]

  expect(found).toEqual([adam, vera, adam])
  expect(opened.reports).toEqual([expect.stringContaining('it is not JSON')])
  expect(opened.users.fault).toContain('it is not JSON')
})

test('while the file is missing its last users count, and one report is made', async () => {
  await using opened = await open()
  await opened.users.find('adam')

  await rm(opened.file)
  const found = [await opened.users.find('adam'), await opened.users.find('vera')]

  expect(found).toEqual([adam, vera])
  expect(opened.reports).toEqual([expect.stringContaining('ENOENT')])
})

test('while the file is missing no change replaces its users, who are not listed as none', async () => {
  await using opened = await open()
  await opened.users.find('adam')
  await rename(opened.file, `${opened.file}.away`)

  await expect(opened.users.update((users) => [...users, vera])).rejects.toThrow('no such file')
  await expect(opened.users.list()).rejects.toThrow('no such file')

  expect(await readdir(opened.folder.path)).not.toContain('users.json')
})

test('a file that the disk did not show is read again at the next look-up', async () => {
  await using opened = await open()
  const { readFileSync } = fs
  onTestFinished(() => replaceRead(readFileSync))
  await opened.users.find('adam')
  await writeUsers(opened.file, [vera])
  // Until then it is read again in any case.
  const age = async () => Date.now() - (await stat(opened.file)).ctimeMs
  await expect.poll(age).toBeGreaterThan(50)
  replaceRead(() => {
    throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })
  })

  const during = await opened.users.find('adam')
  replaceRead(readFileSync)

  expect(during).toEqual(adam)
  expect(await opened.users.find('adam')).toBeUndefined()
  expect(opened.users.fault).toBeUndefined()
})

test('a file that the disk does not show is not taken for a missing one', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'users.json')
  await symlink(file, file) // A link to itself fails, but not with ENOENT, as a broken disk does.
  const users = new FileUsers(file, () => undefined)

  await expect(users.list()).rejects.toThrow('ELOOP')
  await expect(users.update(() => [adam])).rejects.toThrow('ELOOP')
})

test('a repaired file counts again, and a new fault is reported again', async () => {
  await using opened = await open()
  await opened.users.find('adam')

  await writeFile(opened.file, '{')
  await opened.users.find('adam')
  await writeUsers(opened.file, [vera])
  const afterMending = await opened.users.find('adam')
  await writeFile(opened.file, '[')
  await opened.users.find('adam')

  expect(afterMending).toBeUndefined()
  expect(opened.reports).toHaveLength(2)
})

test('a change is private and leaves no temporary file', async () => {
  await using opened = await open()

  await updateUsers(opened.file, (users) => users.filter(({ username }) => username !== 'adam'))

  expect(readUsers(opened.file)).toEqual([vera])
  expect((await stat(opened.file)).mode & 0o777).toBe(0o600)
  expect(await readdir(opened.folder.path)).toEqual(['users.json', 'users.json.lock'])
})

test('a failing change leaves the file unchanged and the lock free', async () => {
  await using opened = await open()
  const before = await readFile(opened.file, 'utf8')

  const change = () =>
    updateUsers(opened.file, () => {
      throw new Error('no')
    })

  await expect(change()).rejects.toThrow('no')
  await expect(change()).rejects.toThrow('no')
  expect(await readFile(opened.file, 'utf8')).toBe(before)
})

test('a change that would make the file invalid is not written', async () => {
  await using opened = await open()

  const change = updateUsers(opened.file, (users) => [...users, adam])

  await expect(change).rejects.toThrow('twice')
  expect(readUsers(opened.file)).toEqual([adam, vera])
})

test('an invalid file is not overwritten by a change', async () => {
  await using opened = await open()
  await writeFile(opened.file, '{')

  await expect(updateUsers(opened.file, () => [adam])).rejects.toThrow('it is not JSON')
  expect(await readFile(opened.file, 'utf8')).toBe('{')
})

test('a failed rename leaves no temporary file', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'users.json')

  const change = updateUsers(file, () => {
    mkdirSync(file)
    return [adam]
  })

  await expect(change).rejects.toThrow('rename')
  expect(await readdir(folder.path)).toEqual(['users.json', 'users.json.lock'])
})

test('readers see a complete file while a writer writes and after it is killed', async () => {
  await using opened = await open()
  const module = new URL('../../src/users/file-users.ts', import.meta.url).href
  const script = `const { FileUsers } = await import('${module}')
    const users = new FileUsers(${JSON.stringify(opened.file)}, () => undefined)
    for (;;) {
      await users.update((before) => before.reverse())
      process.stdout.write('.')
    }`
  const writer = spawn(process.execPath, ['--input-type=module', '-e', script])
  await once(writer.stdout, 'data')

  const counts = Array.from({ length: 500 }, () => readUsers(opened.file).length)
  writer.kill('SIGKILL')
  await once(writer, 'exit')
  await updateUsers(opened.file, (users) => users)

  expect(new Set(counts)).toEqual(new Set([2]))
  expect(readUsers(opened.file)).toHaveLength(2)
})

test('the target of a link is changed, and the link stays', async () => {
  await using opened = await open()
  const linked = join(opened.folder.path, 'link.json')
  await symlink(opened.file, linked)

  await updateUsers(linked, () => [vera])

  expect(readUsers(opened.file)).toEqual([vera])
  expect(existsSync(`${linked}.lock`)).toBe(false)
})

test('a missing directory is created', async () => {
  await using folder = await makeFolder()
  const file = join(folder.path, 'a', 'b', 'users.json')

  await updateUsers(file, () => [adam])

  expect(readUsers(file)).toEqual([adam])
})
