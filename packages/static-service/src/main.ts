import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// A start is mostly compiling. What was compiled is kept beside the installed packages, where only who installed may write.
// Named in the environment, where the threads look for it.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '../node_modules/.cache/compiled')
enableCompileCache()
// Uploads that end together wait for the disk together. Read when the first file is, so it is set before all else.
process.env.UV_THREADPOOL_SIZE ??= '16'
await import('./run.ts')
