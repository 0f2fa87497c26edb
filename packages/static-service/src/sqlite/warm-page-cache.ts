import { open } from 'node:fs/promises'

/**
 * Reads these files once, up to `maxBytes` together, into the kernel's page cache; returns the bytes read. After a boot,
 * look-ups in a database would otherwise fetch page after page from the disk, each a pause of the event loop; sequential
 * reads take a fraction of that time. A file that cannot be read is left to the look-ups.
 *
 * The files stay open in `opened`, which is disposed of after the databases are closed: with the first descriptor of a file
 * that a process closes, it loses all its locks on that file (POSIX, fcntl). Another program that opens the database and
 * closes it would then take itself for the last one, and delete the write-ahead log of the running service.
 */
export async function warmPageCache(
  files: string[],
  opened: AsyncDisposableStack,
  { signal, maxBytes = 268_435_456 }: { signal: AbortSignal; maxBytes?: number },
): Promise<number> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let total = 0
  for (const file of files) {
    try {
      const handle = opened.use(await open(file, 'r'))
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
