import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'

// Worker threads of a service run the bundles that users run: to load the sources of one takes 0.3 s of a core, and most
// tests of the static service start two.

const { Worker } = threads

class BundledWorker extends Worker {
  constructor(...[script, options]: ConstructorParameters<typeof Worker>) {
    super(bundleOf(String(script)) ?? script, options)
  }
}

function bundleOf(script: string): URL | undefined {
  const found = /^(file:.*\/packages\/[a-z-]+\/)src\/.*?([a-z-]+)\.ts$/.exec(script)
  return found ? new URL(`dist/${found[2]}.js`, found[1]) : undefined
}

// The files of a project share processes. Nothing bundles anew what somebody edits while `vitest` watches.
if (Worker.name !== BundledWorker.name && process.env.VITEST_MODE !== 'WATCH') {
  threads.Worker = BundledWorker
  syncBuiltinESMExports()
}
