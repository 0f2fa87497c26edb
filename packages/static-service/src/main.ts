import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// A start is mostly compiling. What was compiled is kept beside the installed packages, where only who installed may write.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'))
// Uploads that end together wait for the disk together. Read when the first file is, so it is set before all else.
process.env.UV_THREADPOOL_SIZE ??= '16'
await import('./run.ts')
