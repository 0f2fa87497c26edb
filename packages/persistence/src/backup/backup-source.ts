import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeNew } from '../durable-files.ts'
import type { BackupJob } from './backup-job.ts'
import { copyBlobs } from './blob-files.ts'
import type { KeptFile } from './kept-file.ts'
import type { Damage, RowSource } from './rows.ts'
import { copyDatabase } from './snapshot.ts'

export interface ContentCopy {
  contents: Iterable<KeptFile>
  to: string
  /** An earlier backup, whose files are linked. */
  earlier: string | undefined
  onDamage: (damage: Damage) => void
}

/** Where a backup takes its data from. */
export interface BackupSource {
  /** Copies the database as of one moment into a SQLite file, flushed. */
  copyDatabase: (to: string) => Promise<void>
  /** Copies the small files, readable only by their owner. @returns their names. */
  copySmallFiles: (to: string) => Promise<string[]>
  copyContents: (copy: ContentCopy) => Promise<void>
  /** Where the contents that are rows can be read; possibly in files below `to`, which `removeRows` removes. */
  openRows: (to: string, catalog: string) => Promise<RowSource>
  removeRows: () => Promise<void>
}

/** Small files in the data directory. What JWT_SECRET_FILE names elsewhere is not backed up. */
const smallFiles = ['users.json', 'jwt.secret']

/** A small database there: API tokens. */
const smallDatabase = 'auth.sqlite'

/** A data directory. */
export function folderSource({
  layout,
  dataDir,
  usersFile,
  signal,
  progress,
}: BackupJob): BackupSource {
  return {
    copyDatabase: (to) => copyDatabase(join(dataDir, layout.database), to, progress.database),
    async copySmallFiles(to) {
      // USERS_FILE may be elsewhere.
      const sourceOf = (name: string) =>
        (name === 'users.json' ? usersFile : undefined) ?? join(dataDir, name)
      const names = smallFiles.filter((name) => existsSync(sourceOf(name)))
      for (const name of names) await writeNew(join(to, name), await readFile(sourceOf(name)))
      if (!existsSync(join(dataDir, smallDatabase))) return names
      await copyDatabase(join(dataDir, smallDatabase), join(to, smallDatabase), () => undefined)
      return [...names, smallDatabase]
    },
    copyContents: ({ contents, to, earlier, onDamage }) =>
      copyBlobs(contents, {
        from: [dataDir, ...(earlier === undefined ? [] : [earlier])],
        to,
        signal,
        onContent: progress.content,
        onDamage,
      }),
    openRows: async () => ({
      folder: dataDir,
      databases: layout.rows ? [layout.rows.database] : [],
    }),
    removeRows: async () => undefined,
  }
}
