import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { DataDirError } from '../errors.ts'

const Manifest = z.object({
  /** 2: contents may be rows of segments. Backups of format 1 have all contents in files. */
  format: z.int().min(1).max(2),
  service: z.string(),
  made_at: z.iso.datetime(),
  /** The database and small files. Content files are not listed: they are named by their digest. */
  files: z.array(z.object({ name: z.string().regex(/^[a-z-]+\.[a-z]+$/), sha256: z.string() })),
  /** The segments of contents that are rows. */
  segments: z
    .array(z.object({ name: z.string().regex(/^[a-z-]+-\d+\.sqlite$/), sha256: z.string() }))
    .default([]),
  /** Digests of contents that were damaged when the backup was made. */
  damaged: z.array(z.string()).default([]),
})

/** What a backup says of itself. Written last: an unfinished backup has none. */
export type Manifest = z.infer<typeof Manifest>

export const manifestName = 'backup.json'

/** @throws {DataDirError} when this is no finished backup of this service. */
export async function readManifest(folder: string, service: string): Promise<Manifest> {
  const text = await readFile(join(folder, manifestName), 'utf8').catch(() => undefined)
  if (text === undefined || folder.endsWith('.partial')) {
    throw new DataDirError(`There is no finished backup in ${folder}.`)
  }
  const manifest = parseManifest(text)
  if (!manifest) {
    throw new DataDirError(
      `${join(folder, manifestName)} cannot be read: it is damaged, or of a newer version of this program.`,
    )
  }
  if (manifest.service === service) return manifest
  throw new DataDirError(`This is a backup of the ${manifest.service}, not of the ${service}.`)
}

/** The SHA-256 digest of a file. */
export async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file, { highWaterMark: 1_048_576 })) hash.update(chunk)
  return hash.digest('hex')
}

function parseManifest(text: string): Manifest | undefined {
  try {
    return Manifest.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
