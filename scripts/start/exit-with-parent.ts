import { Socket } from 'node:net'

// Preloaded into each program that `npm start` spawns. Standard input is a pipe from the parent: it closes even when
// the parent is killed, so no program outlives it.
new Socket({ fd: 0 })
  .on('close', () => process.kill(process.pid, 'SIGTERM'))
  .resume()
  .unref()
