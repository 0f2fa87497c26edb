import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { deploy, download, readFiles, sync, upload } from '../../src/commands/trees.ts'
import { FileClient } from '../../src/file-client.ts'

function createDirectory(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'trees-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(directory, name, '..'), { recursive: true })
    writeFileSync(join(directory, name), content)
  }
  return directory
}

test('symbolic links are not followed', async () => {
  const directory = createDirectory({ 'a.txt': 'text' })
  symlinkSync('/etc/passwd', join(directory, 'link'))
  symlinkSync('..', join(directory, 'directory'))

  const files = await readFiles(directory)

  expect(files.map(({ path }) => path)).toEqual(['a.txt'])
})

test('two names that are one in the store are refused, unless their files are equal', async () => {
  const flags = { delete: false, 'dry-run': false, overwrite: false }
  const sent: string[] = []
  const fetch = async (request: Request) => {
    sent.push(await request.text())
    return Response.json({ change: null, added: 0, replaced: 0, removed: 0, unchanged: 1 })
  }
  const client = new FileClient({ baseUrl: 'http://127.0.0.1', credentials: { token: 't' }, fetch })
  const [composed, decomposed] = ['caf\u00e9.txt', 'cafe\u0301.txt']

  await deploy(client, [createDirectory({ [composed]: 'same', [decomposed]: 'same' }), 'site/'], flags)
  const deploying = deploy(client, [createDirectory({ [composed]: 'one', [decomposed]: 'other' }), 'site/'], flags)

  await expect(deploying).rejects.toThrow(`${composed}: two files have this name`)
  expect(sent).toHaveLength(1)
})

test('a download that a proxy refuses is described by its status', async () => {
  const fetch = async () => new Response('<h1>Bad gateway</h1>', { status: 502, statusText: 'Bad Gateway' })
  const client = new FileClient({ baseUrl: 'http://127.0.0.1', credentials: { token: 't' }, fetch })
  const flags = { delete: false, 'dry-run': false, overwrite: false }

  const downloading = download(client, ['site/', join(createDirectory({}), 'copy')], flags)

  await expect(downloading).rejects.toMatchObject({ code: 'unexpected_response', status: 502 })
})

test('a large file that changes while it is uploaded fails the sync instead of being uploaded for ever', async () => {
  const directory = createDirectory({ 'large.bin': '' })
  truncateSync(join(directory, 'large.bin'), 16_777_217)
  const [{ sha256 = '' } = {}] = await readFiles(directory)
  const uploads: string[] = []
  const problem = { status: 409, code: 'contents_missing', detail: 'Send the missing contents', missing: [sha256] }
  const fetch = async ({ method, url }: Request) => {
    if (method === 'PUT') return Response.json(problem, { status: 409 })
    if (method === 'GET') return Response.json({ url: '/static/site/large.bin' })
    if (method === 'POST') uploads.push(url)
    if (uploads.length > 1)
      return Response.json({ status: 400, code: 'again', detail: 'Uploaded again' }, { status: 400 })
    const headers = {
      location: '/api/uploads/1',
      'content-location': '/api/files/site/large.bin',
      'upload-offset': '0',
    }
    return new Response(null, { status: 204, headers })
  }
  const client = new FileClient({ baseUrl: 'http://127.0.0.1', credentials: { token: 't' }, fetch })

  const syncing = sync(client, [directory, 'site/'], { delete: false, 'dry-run': false, overwrite: false })

  await expect(syncing).rejects.toMatchObject({ code: 'contents_missing' })
  expect(uploads).toHaveLength(1)
})

test('a content whose connection breaks is sent again; one that is refused is named, and no further one is sent', async () => {
  const directory = createDirectory(Object.fromEntries([...'abcdefghijklmnopqrst'].map((name) => [name, name])))
  const missing = (await readFiles(directory)).map(({ sha256 }) => sha256)
  const problem = { status: 409, code: 'contents_missing', detail: 'Send the missing contents', missing }
  const sent: string[] = []
  const fetch = async ({ url }: Request) => {
    if (url.includes('/api/trees/')) return Response.json(problem, { status: 409 })
    sent.push(url)
    if (sent.length === 1) throw new TypeError('fetch failed')
    return Response.json({ status: 507, code: 'quota_exceeded', detail: 'Quota exceeded' }, { status: 507 })
  }
  const client = new FileClient({
    baseUrl: 'http://127.0.0.1',
    credentials: { token: 't' },
    fetch,
    sleep: async () => {},
  })

  const syncing = sync(client, [directory, 'site/'], { delete: false, 'dry-run': false, overwrite: false })

  await expect(syncing).rejects.toThrow(/^[a-t]: Quota exceeded \(quota_exceeded\)$/)
  // One for each of eight workers, and the repeated one. The others may still read their files.
  await expect.poll(() => sent.length).toBe(9)
})

test('at a terminal the line of the progress bar ends also where an upload fails', async () => {
  const { stderr } = process
  const { isTTY } = stderr
  const file = join(createDirectory({ 'large.bin': '' }), 'large.bin')
  truncateSync(file, 16_777_217)
  const problem = { status: 507, code: 'quota_exceeded', detail: 'Quota exceeded' }
  const fetch = async () => Response.json(problem, { status: 507 })
  const client = new FileClient({ baseUrl: 'http://127.0.0.1', credentials: { token: 't' }, fetch })
  const write = vi.spyOn(stderr, 'write').mockReturnValue(true)
  stderr.isTTY = true
  onTestFinished(() => {
    stderr.isTTY = isTTY
    write.mockRestore()
  })

  await expect(upload(client, 'large.bin', file)).rejects.toThrow('Quota exceeded')

  expect(write.mock.calls.join('')).toMatch(/ 0 %\n$/)
})
