import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// A start is mostly compiling. What was compiled is kept beside the installed packages, where only who installed may write.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'))
await import('./run.ts')
