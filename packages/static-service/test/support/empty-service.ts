import { vi } from 'vitest'
import { type Service, start } from './start.ts'

// By settings. They end with the worker.
const idle = new Map<string, Service>()
const maxIdle = 2

/**
 * An empty service, for tests that need no fresh process: starting costs most of a short test, so an earlier test of the
 * worker may have used it. `lines` begin with this test. Disposal deletes every file; a service that is not empty then is not
 * used again.
 */
export async function emptyService(env: Record<string, string> = {}): Promise<Service> {
  const settings = JSON.stringify(env)
  const service = idle.get(settings) ?? (await start({ env }))
  idle.delete(settings)
  const { length } = service.lines()
  return {
    ...service,
    lines: () => service.lines().slice(length),
    [Symbol.asyncDispose]: async () => {
      if (idle.has(settings) || !(await deleteAll(service))) return service[Symbol.asyncDispose]()
      idle.set(settings, service)
      await endOldest()
    },
  }
}

async function endOldest() {
  const [oldest] = idle
  if (oldest === undefined || idle.size <= maxIdle) return
  const [settings, service] = oldest
  idle.delete(settings)
  await service[Symbol.asyncDispose]()
}

/** Whether nothing is left: contents are collected after the response. */
async function deleteAll({ call, storedContents }: Service): Promise<boolean> {
  await call('POST', '/api/files/delete', { json: { prefix: '/' } })
  return vi
    .waitUntil(async () => (await storedContents()).length === 0, { timeout: 2000, interval: 10 })
    .catch(() => false)
}
