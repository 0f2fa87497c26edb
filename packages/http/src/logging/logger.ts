import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino'
import { type LogOutput, standardOutput } from './log-output.ts'

/** A pino logger that shows where its lines go; its children inherit `output`. */
export type Logger = PinoLogger & { readonly output: LogOutput }

/** Logs JSON lines to standard output and redacts credentials. Tests pass another destination as `to`. */
export function createLogger(
  settings: { name: string; level: string },
  to?: DestinationStream,
): Logger {
  const output = to ? unbatched(to) : standardOutput()
  const options = {
    level: settings.level,
    base: { name: settings.name },
    timestamp: () => `,"time":"${timestamp()}"`,
    formatters: { level: (level: string) => ({ level }) },
    redact: { paths: secretPaths, censor: '[redacted]' },
  }
  return Object.assign(pino(options, output), { output })
}

// Cache the timestamp: many lines share a millisecond.
let last = { at: 0, text: '' }

/** The present time as RFC 3339, in UTC. */
export function timestamp(): string {
  const at = Date.now()
  if (at !== last.at) last = { at, text: new Date(at).toISOString() }
  return last.text
}

const unbatched = (to: DestinationStream): LogOutput => ({
  write: (line) => to.write(line),
  writeBatched: (line) => to.write(line),
  droppedLines: 0,
})

const secretNames = [
  'authorization',
  'password',
  'access_token',
  'token',
  'secret',
  'ApiKey',
  'apiKey',
]
const secretPaths = secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
