import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Manifest, readManifest } from './manifest.ts'

/** A finished backup that a new one shares unchanged files with. */
export interface EarlierBackup {
  folder: string
  manifest: Manifest
}

/** The newest finished backup of this service in the folder that is going to hold the new one. */
export async function findEarlierBackup(
  folder: string,
  service: string,
): Promise<EarlierBackup | undefined> {
  const parent = dirname(folder)
  const entries = await readdir(parent, { withFileTypes: true })
  const found: EarlierBackup[] = []
  for (const entry of entries) {
    const candidate = join(parent, entry.name)
    if (!entry.isDirectory() || candidate === folder) continue
    const manifest = await readManifest(candidate, service).catch(() => undefined)
    if (manifest) found.push({ folder: candidate, manifest })
  }
  return found.toSorted((one, other) => (one.manifest.made_at < other.manifest.made_at ? 1 : -1))[0]
}
