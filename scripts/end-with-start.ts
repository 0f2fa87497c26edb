import { Socket } from 'node:net'

// Loaded into each program that start.ts runs: its standard input is a pipe that ends with start.ts, also where that
// is killed and can stop nothing.
new Socket({ fd: 0 })
  .on('close', () => process.kill(process.pid, 'SIGTERM'))
  .resume()
  .unref()
