import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Compiling dominates the start. The cache lies beside the installed packages, where only the installing user writes.
// Enabled before the first package is loaded, hence the dynamic imports.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'))
const { startService } = await import('@domains-and-files/http')
const { readConfig } = await import('./config.ts')
const { buildApp } = await import('./app.ts')
await startService({ name: 'console', readConfig, createService: buildApp })
