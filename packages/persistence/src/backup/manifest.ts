import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { DataDirError } from '../errors.ts'

const Manifest = z.object({
  format: z.literal(1, 'is of a newer version of this program'),
  service: z.string(),
  made_at: z.iso.datetime(),
  /** The database and the small files; contents are named by their digest already. */
  files: z.array(z.object({ name: z.string().regex(/^[a-z-]+\.[a-z]+$/), sha256: z.string() })),
})

/** What a backup says of itself; written last, so that what is not finished has none. */
export type Manifest = z.infer<typeof Manifest>

export const manifestName = 'backup.json'

/** @throws {DataDirError} when this is no finished backup of this service. */
export async function readManifest(folder: string, service: string): Promise<Manifest> {
  const text = await readFile(join(folder, manifestName), 'utf8').catch(() => undefined)
  if (text === undefined || folder.endsWith('.partial')) {
    throw new DataDirError(`There is no finished backup in ${folder}.`)
  }
  const manifest = readJson(text)
  if (!manifest) throw new DataDirError(`${join(folder, manifestName)} cannot be read.`)
  if (manifest.service === service) return manifest
  throw new DataDirError(`This is a backup of the ${manifest.service}, not of the ${service}.`)
}

/** The digest of a file as it lies on the disk. */
export async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file, { highWaterMark: 1_048_576 })) hash.update(chunk)
  return hash.digest('hex')
}

function readJson(text: string): Manifest | undefined {
  try {
    return Manifest.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
