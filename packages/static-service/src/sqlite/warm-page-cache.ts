import { open } from 'node:fs/promises'

/**
 * Reads these files into the kernel's page cache, up to `maxBytes` together; returns the bytes read. Otherwise, after a
 * boot, database look-ups fetch page after page from the disk and block the event loop each time; sequential reads take
 * a fraction of that time. Skips files that cannot be read.
 *
 * The files stay open in `opened`; dispose of it after the databases are closed. When a process closes any descriptor
 * of a file, it loses all its locks on that file (POSIX, fcntl). Another program that opens and closes the database
 * would then see no other connection, and delete the write-ahead log of the running service.
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
