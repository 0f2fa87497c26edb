import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Compilation dominates the start, so cache it, beside the installed packages, where only the installing user can write.
// Dynamic imports: the cache must be enabled before the first package is loaded.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'))
const { startService } = await import('@domains-and-files/http')
const { readConfig } = await import('./config.ts')
const { buildApp } = await import('./app.ts')
await startService({ name: 'console', readConfig, createService: buildApp })
