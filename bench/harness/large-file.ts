import { randomBytes } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { ask } from './answer.ts'
import { run } from './program.ts'
import { bearer, type Service } from './services.ts'
import { cores } from './settings.ts'

/** Its size. */
export const megabytes = 2 ** 30 / 1e6

/** A file of 1 GiB. */
export async function makeLargeFile(folder: string): Promise<string> {
  const file = join(folder, 'large.bin')
  await run(['dd', 'if=/dev/urandom', `of=${file}`, 'bs=1M', 'count=1024'], { core: cores.load })
  return file
}

/** Uploads the file, checks its digest, and deletes it again; returns the seconds of the upload. */
export async function uploadAndDelete(service: Service, file: string): Promise<number> {
  const form = ['-F', 'path=large.bin', '-F', `file=@${file};filename=large.bin`]
  const { authorization } = bearer(service)
  const seconds = await curl(`${service.url}/api/files/upload`, [...['-H', `authorization: ${authorization}`], ...form])
  await assertDigest(service, file)
  await fetch(`${service.url}/api/files/large.bin`, { method: 'DELETE', headers: bearer(service) })
  return seconds
}

/** New bytes, since equal contents are stored once; and no dirty pages left for the next contender. */
export async function alter(file: string) {
  const handle = openSync(file, 'r+')
  writeSync(handle, randomBytes(16), 0, 16, 0)
  closeSync(handle)
  await run(['sync'], { core: cores.load })
}

/** The SHA-256 digest of a file. */
export async function digestOf(file: string): Promise<string> {
  const printed = await run(['sha256sum', file], { core: cores.load })
  return printed.split(' ')[0] ?? ''
}

async function assertDigest({ url, token }: Service, file: string) {
  const digest = await digestOf(file)
  const record = await ask(`${url}/api/files/large.bin`, { authorization: `Bearer ${token}` })
  if (!record.body.includes(digest)) throw new Error('ours stored other bytes than were sent')
}

/** Runs curl; returns its seconds. */
export async function curl(url: string, args: string[]): Promise<number> {
  const format = '%{http_code} %{time_total}'
  const printed = await run(['curl', '-sS', '-o', '/dev/null', '-w', format, '-H', 'expect:', ...args, url], {
    core: cores.load,
  })
  const [status, seconds] = printed.split(' ')
  if (!status?.startsWith('20')) throw new Error(`${url}: ${status}`)
  return Number(seconds)
}
