import { type DestinationStream, pino } from 'pino'

/**
 * Standard output for a log. The lines of one turn of the event loop leave in one write as it ends: a write for each costs
 * several times as much. What is left is written when the process ends. Waits for a reader that is slow, and the service
 * with it, as `console` and pino do.
 */
export function logOutput(): DestinationStream & { flushSync: () => void } {
  const output = pino.destination({ sync: true })
  let lines = ''
  const flushSync = () => {
    const gathered = lines
    lines = ''
    if (gathered) output.write(gathered)
  }
  process.on('exit', flushSync)
  return {
    write(line) {
      if (!lines) setImmediate(flushSync)
      lines += line
    },
    // After a fatal line pino asks for it.
    flushSync,
  }
}
