import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Agent } from 'node:http'
import { join } from 'node:path'
import { z } from 'zod'
import { dataDirectory } from '../../../../test/support/not-tested.ts'
import { ask, boundary, filesBelow, writeForm } from './start.ts'

const secret = 'SENTINEL-THAT-NOBODY-MUST-SEE'

/** What may be asked: the place of the sentinels, and somebody who answers. */
export interface Target {
  port: number
  /** Sentinels lie here and in it; nothing but what is below `data` may change. */
  outside: string
  data: string
  token: string
  agent: Agent
  /** Few names, with one spelling and one upload each: how requests are read does not depend on the storage. */
  isBrief: boolean
}

/** Files beside and above the store that no request may read, change or add to. */
export function plant(outside: string, data: string): void {
  for (const folder of [outside, data]) writeFileSync(join(folder, 'sentinel'), secret)
}

const Cases = z.object({
  cases: z.array(z.looseObject({ filename: z.string().optional(), payload: z.string().optional() })),
})

/** The names of a table in FILES_DATA; empty where that is absent. */
export function readTable(name: string): string[] {
  const file = join(dataDirectory('FILES_DATA'), name)
  if (!existsSync(file)) return []
  const { cases } = Cases.parse(JSON.parse(readFileSync(file, 'utf8')))
  return cases.map(({ filename, payload }) => filename ?? payload ?? '')
}

/** Uses one name wherever a caller can put one, and says what it should not have been able to do. */
export async function probe(target: Target, name: string): Promise<string[]> {
  const { agent } = target
  const headers = { authorization: `Bearer ${target.token}` }
  const once = encodeURIComponent(name.toWellFormed())
  const slashed = once.replaceAll('%2F', '/')
  const raw = [...Buffer.from(name.toWellFormed())].map(keepIfSendable).join('')
  const paths = target.isBrief ? [once] : [...new Set([once, slashed, raw])]
  const urls = paths.flatMap((path) => [`/static/${path}`, `/api/files/${path}`, `/api/files/tree?prefix=${path}`])
  const upload = (fields: Parameters<typeof writeForm>[0], to = 'upload') =>
    ask(target.port, {
      method: 'POST',
      path: `/api/files/${to}`,
      headers: { ...headers, 'content-type': `multipart/form-data; boundary=${boundary}` },
      body: writeForm(fields),
      agent,
    })
  const content = 'planted by a probe'
  const otherUploads = () => [
    (async () => ['file name', await upload([{ name: 'file', content, filename: name }])])(),
    (async () => [
      'directory of a batch',
      await upload(
        [
          { name: 'path', content: name },
          { name: 'files', content, filename: 'x' },
        ],
        'upload/batch',
      ),
    ])(),
  ]
  const asked = [
    ...urls.map(async (path) => [path, await ask(target.port, { method: 'GET', path, headers, agent })]),
    ...paths.map(async (path) => [
      `DELETE ${path}`,
      await ask(target.port, { method: 'DELETE', path: `/api/files/${path}`, headers, agent }),
    ]),
    (async () => [
      'path',
      await upload([
        { name: 'path', content: name },
        { name: 'file', content, filename: 'x' },
      ]),
    ])(),
    ...(target.isBrief ? [] : otherUploads()),
  ] as Promise<[string, Awaited<ReturnType<typeof ask>>]>[]
  const breaches: string[] = []
  for (const [how, answer] of await Promise.all(asked)) {
    if (answer.bytes.includes(secret)) breaches.push(`${how}: read a sentinel`)
    if (answer.status >= 500) breaches.push(`${how}: answered ${answer.status}`)
    const stored = answer.body.path ?? ''
    if (/(?:^|\/)\.{0,2}(?:\/|$)|[\\\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(stored) && stored) {
      breaches.push(`${how}: stored ${JSON.stringify(stored)}`)
    }
  }
  return breaches
}

/** Files that are where they should not be, or not as they were. */
export function inspect({ outside, data }: Target): string[] {
  const isOurs =
    /^(?:blobs\/[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{64}(?:\.(?:br|zstd|gzip))?|(?:static-service|contents|auth|uploads)\.sqlite(?:-wal|-shm)?|disk-reserve|writable|(?:backup\.)?lock|sentinel|users\.json(?:\.lock)?|tmp\/[0-9a-f-]{36})$/
  const strangers = filesBelow(outside)
    .filter((file) => file !== join(outside, 'sentinel'))
    .filter((file) => !file.startsWith(`${data}/`) || !isOurs.test(file.slice(data.length + 1)))
  const changed = [outside, data].filter((folder) => readFileSync(join(folder, 'sentinel'), 'utf8') !== secret)
  return [...strangers, ...changed.map((folder) => `${folder}/sentinel was changed`)]
}

const keepIfSendable = (byte: number) =>
  byte > 0x20 && byte < 0x7f && byte !== 0x23 ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`
