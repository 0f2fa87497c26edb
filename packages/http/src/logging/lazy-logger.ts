import type { FastifyBaseLogger } from 'fastify'
import type { Logger } from './logger.ts'

type Level = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

/**
 * A request's logger. Creates the child logger with the first line that `parent` would write: most requests log none but
 * the access log's, and plugins log their steps at levels that are off.
 */
export class LazyLogger {
  readonly #parent: Pick<Logger, 'isLevelEnabled'>
  readonly #create: () => FastifyBaseLogger
  #created: FastifyBaseLogger | undefined

  constructor(parent: Pick<Logger, 'isLevelEnabled'>, create: () => FastifyBaseLogger) {
    this.#parent = parent
    this.#create = create
  }

  get level() {
    return this.#logger.level
  }

  child(...args: Parameters<FastifyBaseLogger['child']>) {
    return this.#logger.child(...args)
  }

  fatal(...args: unknown[]) {
    this.#log('fatal', args)
  }

  error(...args: unknown[]) {
    this.#log('error', args)
  }

  warn(...args: unknown[]) {
    this.#log('warn', args)
  }

  info(...args: unknown[]) {
    this.#log('info', args)
  }

  debug(...args: unknown[]) {
    this.#log('debug', args)
  }

  trace(...args: unknown[]) {
    this.#log('trace', args)
  }

  silent() {}

  #log(level: Level, args: unknown[]) {
    if (this.#parent.isLevelEnabled(level)) Reflect.apply(this.#logger[level], this.#logger, args)
  }

  get #logger(): FastifyBaseLogger {
    this.#created ??= this.#create()
    return this.#created
  }
}
