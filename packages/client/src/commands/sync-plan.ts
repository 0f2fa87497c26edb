import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface LocalFile {
  /** Path in the store. */
  path: string
  /** Path on this machine. */
  source: string
  size: number
}

/** The regular files below a directory, in order; symbolic links are not followed. */
export async function listLocalFiles(directory: string, prefix: string): Promise<LocalFile[]> {
  const found: LocalFile[] = []
  // Not the recursive `readdir`, which follows links to directories, even in cycles.
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const source = join(directory, entry.name)
    const path = prefix + entry.name.normalize('NFC')
    if (entry.isDirectory()) found.push(...(await listLocalFiles(source, `${path}/`)))
    else if (entry.isFile()) found.push({ path, source, size: (await stat(source)).size })
  }
  return found.sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** Compares by size, then by SHA-256; a file is read only if the sizes are equal. `remove`: paths without a local file. */
export async function planSync(local: LocalFile[], stored: Map<string, { size: number; sha256: string }>) {
  const upload: LocalFile[] = []
  for (const file of local) {
    const known = stored.get(file.path)
    if (known?.size === file.size && known.sha256 === (await sha256Of(file.source))) continue
    upload.push(file)
  }
  const paths = new Set(local.map(({ path }) => path))
  const remove = [...stored.keys()].filter((path) => !paths.has(path))
  return { upload, remove, unchanged: local.length - upload.length }
}

export async function sha256Of(source: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(source)) hash.update(chunk)
  return hash.digest('hex')
}
