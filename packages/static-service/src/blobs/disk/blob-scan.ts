import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { blobPathOf, encodedForms } from '../blob-path.ts'

/** The names of the directories of `blobs`, two hex digits: a store is scanned one by one. */
export const prefixes = Array.from({ length: 256 }, (_, at) => at.toString(16).padStart(2, '0'))

export interface Shard {
  /** Digests of contents. */
  digests: Set<string>
  /** Digests of contents that have compressed forms. */
  forms: Set<string>
  /** Files that the store did not create, by their path below `blobs`. */
  strangers: string[]
}

/** The names of the directories in `blobs`. */
export const listShards = (dataDir: string): Promise<string[]> => list(join(dataDir, 'blobs'))

/** Lists the files of one directory of `blobs`, without opening any. */
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
