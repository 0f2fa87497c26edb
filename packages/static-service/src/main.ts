import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'

// What runs once is not worth optimizing: that would be a tenth of the CPU time of a start.
const optimizers = ['maglev', 'turbofan']
for (const each of optimizers) setFlagsFromString(`--no-${each}`)

// Compiling dominates the start. The cache lies beside the installed packages, where only the installing user writes.
// Set in the environment for the worker threads. Enabled before the first package is loaded, hence the dynamic imports.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '../node_modules/.cache/compiled')
enableCompileCache()
// Concurrent uploads fsync concurrently. libuv reads the size at its first use.
process.env.UV_THREADPOOL_SIZE ??= '16'
const { growYoungGeneration, keepYoungGenerationSmall } = await import('./memory.ts')
keepYoungGenerationSmall()
const { start } = await import('./service.ts')
await start()
growYoungGeneration()
for (const each of optimizers) setFlagsFromString(`--${each}`)
