import disk from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

/** One call of the disk, as the process makes it. */
export interface Operation {
  name: string
  path: string
  /** Where a rename or a link goes to; of an open, how. */
  to?: string
  /** What a write was given. */
  bytes?: Buffer
}

/** Sees each call: before it is made, which is not if this throws, and when it has ended well. */
export interface Watch {
  begin: (operation: Operation) => unknown
  /** With what `begin` said of it, and how many bytes a write took. */
  end?: (operation: Operation, begun: unknown, written: number) => void
}

type Call = (...args: unknown[]) => unknown

/** Shows every call of `node:fs/promises`, and of the handles that it opens, to `watch`, for the rest of the process. */
export function watchDisk(watch: Watch): void {
  watchPromises(watch)
  syncBuiltinESMExports()
}

const onPaths = ['link', 'mkdir', 'open', 'readdir', 'rename', 'rm', 'stat', 'statfs'] as const
const onHandles = ['read', 'stat', 'sync', 'datasync', 'write', 'writev'] as const

function watchPromises(watch: Watch) {
  for (const name of onPaths) {
    const original = disk[name] as Call // Each takes paths first and promises something.
    const replacement = async (path: unknown, to: unknown, ...more: unknown[]) => {
      const operation = operationOf(name, path, to)
      const begun = watch.begin(operation)
      const result = await original(path, to, ...more)
      watch.end?.(operation, begun, 0)
      return name === 'open' ? watchHandle(Object(result), String(path), watch) : result
    }
    Object.assign(disk, { [name]: replacement })
  }
}

function watchHandle(handle: Record<string, Call>, path: string, watch: Watch) {
  for (const name of onHandles) {
    const original = handle[name]?.bind(handle)
    if (!original) throw new Error(`a file handle cannot ${name}`)
    handle[name] = async (first, ...more) => {
      const operation =
        name === 'write'
          ? writeOf(path, first, Number(more[0] ?? 0))
          : name === 'writev'
            ? writeOf(path, Buffer.concat(buffersIn(first)), 0)
            : { name: name === 'datasync' ? 'sync' : name, path }
      const begun = watch.begin(operation)
      const result = await original(first, ...more)
      watch.end?.(operation, begun, Number(Object(result).bytesWritten ?? 0))
      return result
    }
  }
  return handle
}

const operationOf = (name: string, path: unknown, to: unknown): Operation => ({
  name,
  path: String(path),
  ...(typeof to === 'string' ? { to } : {}),
})

const buffersIn = (given: unknown) => (Array.isArray(given) ? given.filter((each) => each instanceof Uint8Array) : [])

const writeOf = (path: string, given: unknown, from: number): Operation =>
  given instanceof Uint8Array
    ? { name: 'write', path, bytes: Buffer.from(given).subarray(from) }
    : { name: 'write', path }
