import type { Clock } from '@domains-and-files/http'
import type { DomainSketch, Sandbox } from '@domains-and-files/registrar-sandbox'
import { serviceDatabase } from './databases.ts'
import { type Service, start } from './start.ts'

interface Options {
  env?: Record<string, string>
  /** They learn by notifications what the others do. */
  isListening?: boolean
  domains?: DomainSketch[]
  /** The registrar; the caller closes it. */
  sandbox?: Sandbox
  /** Of all replicas and their database; the system's unless given. */
  clock?: Clock
}

/** So many replicas on one database, before one registrar; all have a session of the admin. */
export async function startReplicas(count: number, options: Options = {}) {
  const stack = new AsyncDisposableStack()
  const database = stack.use(await serviceDatabase())
  const env = {
    ...(options.isListening ? { DATABASE_DIRECT_URL: database.url } : {}),
    ...options.env,
  }
  const { isListening: _, ...registrar } = options
  const first = stack.use(await start({ ...registrar, databaseUrl: database.url, env }))
  const further = { ...registrar, sandbox: first.sandbox, databaseUrl: database.url, env }
  const replicas: [Service, Service, ...Service[]] = [first, stack.use(await start(further))]
  while (replicas.length < count) replicas.push(stack.use(await start(further)))
  await Promise.all(replicas.map((replica) => replica.sessionOf('admin')))
  return { replicas, databaseUrl: database.url, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}
