// Preloaded into a service process: kills it at one point of a write, KILL_AT=<point>:<nth time>.
import { subscribe } from 'node:diagnostics_channel'
import Database from 'better-sqlite3'

/** Points of a write in their order, each between two of its steps. */
export const killPoints = [
  'read:created',
  'read:answered',
  'intent:uncommitted',
  'intent:committed',
  'write:created',
  'write:sent',
  'write:answered',
  'readback:created',
  'readback:answered',
  'outcome:uncommitted',
  'outcome:committed',
] as const

const [point, nth] = (process.env.KILL_AT ?? '').split(/:(?=[0-9]+$)/)
let left = Number(nth)

function pass(reached: string) {
  if (reached === point && --left === 0) process.kill(process.pid, 'SIGKILL')
}

// Requests to the registrar, as undici reports them.
const calls = new WeakMap<object, string>()
let hasWritten = false

function callOf(request: { body?: unknown }): string | undefined {
  const known = calls.get(request)
  if (known) return known
  const body = request.body instanceof Uint8Array ? Buffer.from(request.body).toString() : String(request.body)
  const isWrite = body.includes('dns.setHosts')
  if (!isWrite && !body.includes('dns.getHosts')) return undefined
  const call = isWrite ? 'write' : hasWritten ? 'readback' : 'read'
  hasWritten = isWrite
  calls.set(request, call)
  return call
}

const events = { create: 'created', bodySent: 'sent', trailers: 'answered' }
for (const [event, reached] of Object.entries(events)) {
  subscribe(`undici:request:${event}`, (message) => {
    const { request } = message as { request: { body?: unknown } } // As undici documents it.
    const call = callOf(request)
    if (call) pass(`${call}:${reached}`)
  })
}

// Transactions of the ledger, by the statements that run in them.
const stages = { 'insert into sends': 'intent', 'update sends set state': 'outcome' }
const { prepare } = Database.prototype
let stage: string | undefined

function ran(sql: string, begun: string | undefined) {
  if (begun) {
    stage = begun
    pass(`${stage}:uncommitted`)
  }
  if (sql === 'commit' && stage) pass(`${stage}:committed`)
  if (sql === 'commit' || sql === 'rollback') stage = undefined
}

Database.prototype.prepare = function (this: Database.Database, sql: string) {
  const statement = prepare.call(this, sql)
  const begun = Object.entries(stages).find(([start]) => sql.trimStart().startsWith(start))?.[1]
  if (begun || sql === 'commit' || sql === 'rollback') {
    for (const method of ['run', 'get'] as const) {
      const call = statement[method].bind(statement) as (...values: unknown[]) => unknown
      Object.assign(statement, {
        [method]: (...values: unknown[]) => {
          const result = call(...values)
          ran(sql, begun)
          return result
        },
      })
    }
  }
  return statement
} as typeof prepare
