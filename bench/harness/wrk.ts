import { join } from 'node:path'
import { run } from './program.ts'
import { cores, settings } from './settings.ts'

export interface Load {
  url: string
  headers?: Record<string, string>
  connections?: number
  seconds?: number
  /** A file of bench/load that makes the requests, and what it reads from its environment. */
  script?: string
  env?: Record<string, string>
}

/** Requests a second that the server answers to one thread of wrk with 32 connections; any failed one is an error. */
export async function load({ url, headers = {}, connections = 32, ...more }: Load) {
  const { seconds = settings.seconds, script, env = {} } = more
  const lines = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const scripted = script ? ['-s', join(import.meta.dirname, 'load', script)] : []
  const printed = await run(
    [
      'wrk',
      '-t1',
      `-c${connections}`,
      `-d${seconds}s`,
      '--timeout',
      '30s',
      ...lines,
      ...scripted,
      url,
    ],
    { core: cores.load, env },
  )
  const failures = /Non-2xx or 3xx responses: \d+|Socket errors: .*/.exec(printed)
  if (failures) throw new Error(`${url}: ${failures[0]}`)
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(printed)?.[1])
  if (!perSecond) throw new Error(`wrk answered nothing to read: ${printed}`)
  return perSecond
}
