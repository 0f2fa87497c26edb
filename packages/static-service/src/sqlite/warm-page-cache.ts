import { open } from 'node:fs/promises'

/**
 * Reads these files once, up to `maxBytes` together, into the kernel's page cache; returns the bytes read. After a boot,
 * look-ups in a database would otherwise fetch page after page from the disk, each a pause of the event loop; sequential
 * reads take a fraction of that time. A file that cannot be read is left to the look-ups.
 */
export async function warmPageCache(
  files: string[],
  signal: AbortSignal,
  maxBytes = 268_435_456,
): Promise<number> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let total = 0
  for (const file of files) {
    try {
      await using handle = await open(file, 'r')
      while (total < maxBytes && !signal.aborted) {
        const { bytesRead } = await handle.read(buffer, 0, Math.min(chunkBytes, maxBytes - total))
        total += bytesRead
        if (bytesRead === 0) break
      }
    } catch {}
  }
  return total
}

const chunkBytes = 262_144
