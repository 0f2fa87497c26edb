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

type Intercept = <Result>(operation: Operation, run: () => Promise<Result>) => Promise<Result>
type Call = (...args: unknown[]) => Promise<unknown>

/** Hands every call of `node:fs/promises`, and of the handles that it opens, to `intercept`, for good. */
export function interceptDisk(intercept: Intercept): void {
  for (const name of onPaths) {
    const original = disk[name] as Call // Each takes paths first and promises something.
    const replacement: Call = (path, to, ...more) => {
      const operation = { name, path: String(path), ...(typeof to === 'string' ? { to } : {}) }
      return intercept(operation, async () => {
        const result = await original(path, to, ...more)
        return name === 'open' ? interceptHandle(Object(result), String(path), intercept) : result
      })
    }
    Object.assign(disk, { [name]: replacement })
  }
  syncBuiltinESMExports()
}

const onPaths = ['link', 'mkdir', 'open', 'readdir', 'rename', 'rm', 'stat', 'statfs'] as const
const onHandles = ['read', 'stat', 'sync', 'write'] as const

function interceptHandle(handle: Record<string, Call>, path: string, intercept: Intercept) {
  for (const name of onHandles) {
    const original = handle[name]?.bind(handle)
    if (!original) throw new Error(`a file handle cannot ${name}`)
    handle[name] = (first, ...more) => {
      const operation =
        name === 'write' && Buffer.isBuffer(first)
          ? { name, path, bytes: first.subarray(Number(more[0] ?? 0)) }
          : { name, path }
      return intercept(operation, () => original(first, ...more))
    }
  }
  return handle
}
