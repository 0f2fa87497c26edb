import { join } from 'node:path'
import { run } from './program.ts'
import { cores, settings } from './settings.ts'

export interface Load {
  url: string
  headers?: Record<string, string>
  connections?: number
  seconds?: number
  /** A script of `load/` that makes the requests, with its environment. */
  script?: string
  env?: Record<string, string>
}

/** Requests per second of one wrk thread with 32 connections. @throws if any request fails. */
export async function load({ url, headers = {}, connections = 32, ...more }: Load) {
  const { seconds = settings.seconds, script, env = {} } = more
  const lines = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const scripted = script ? ['-s', join(import.meta.dirname, 'load', script)] : []
  const printed = await run(
    ['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s', ...lines, ...scripted, url],
    { core: cores.load, env },
  )
  const failures = /Non-2xx or 3xx responses: \d+|Socket errors: .*/.exec(printed)
  if (failures) throw new Error(`${url}: ${failures[0]}`)
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(printed)?.[1])
  if (!perSecond) throw new Error(`wrk printed no rate: ${printed}`)
  return perSecond
}
