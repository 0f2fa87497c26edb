import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { blobPathOf, encodedForms } from './blob-path.ts'

/** The two hex digits that the first folders are named by: the parts in which a store is walked. */
export const prefixes = Array.from({ length: 256 }, (_, at) => at.toString(16).padStart(2, '0'))

export interface Shard {
  /** The digests of the contents that are there. */
  digests: Set<string>
  /** The digests of compressed forms that are there. */
  forms: Set<string>
  /** Files, by their path below `blobs`, that no store has put there. */
  strangers: string[]
}

/** What lies in one part of the store. Reads folders only, no file. */
export async function readShard(dataDir: string, prefix: string): Promise<Shard> {
  const shard: Shard = { digests: new Set(), forms: new Set(), strangers: [] }
  for (const folder of await list(join(dataDir, 'blobs', prefix))) {
    for (const name of await list(join(dataDir, 'blobs', prefix, folder))) {
      const [digest = '', form] = name.split('.', 2)
      const isKnown = form === undefined || encodedForms.some((each) => each === form)
      const place = [prefix, folder, name].join('/')
      if (!isKnown || !/^[0-9a-f]{64}$/.test(digest) || !isAt(place, digest)) {
        shard.strangers.push(place)
      } else if (form === undefined) shard.digests.add(digest)
      else shard.forms.add(digest)
    }
  }
  return shard
}

const isAt = (place: string, digest: string) =>
  place.startsWith(blobPathOf(digest).slice(0, 2).join('/'))

const list = (folder: string) =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })
