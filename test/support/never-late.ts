import { syncBuiltinESMExports } from 'node:module'
import perfHooks from 'node:perf_hooks'

// A preload for services whose clients do not come back after a 503: on a machine that stands still for a moment, they
// take their event loop for punctual and shed no request.

const { monitorEventLoopDelay } = perfHooks

perfHooks.monitorEventLoopDelay = (options) =>
  Object.defineProperty(monitorEventLoopDelay(options), 'mean', { value: 0 })
syncBuiltinESMExports()
