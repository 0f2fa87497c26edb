import { accessSync, constants } from 'node:fs'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { createDirectory } from '../../packages/persistence/src/durable-files.ts'

/** A start that a person can correct; the message is one sentence for the terminal. */
export class StartError extends Error {}

export interface StartSettings {
  dataDir: string
  /** The domain service's port; the console has the one below, the static service and the sandbox the next two. */
  portBase: number
  isProduction: boolean
  /** Without a registrar of the operator's own, the services use the sandbox. */
  usesSandbox: boolean
}

/** @throws {StartError} naming the variable and what to set. */
export function readSettings(root: string, env: NodeJS.ProcessEnv): StartSettings {
  const text = env.PORT_BASE || '3001'
  const portBase = Number(text)
  if (!/^\d+$/.test(text) || portBase < 2 || portBase > 65_533) {
    throw new StartError(`PORT_BASE=${text} is not a port: set a number from 2 to 65533.`)
  }
  const isProduction = env.NODE_ENV === 'production'
  const usesSandbox = !(env.REGISTRAR_URL || env.REGISTRAR_URL_FILE)
  if (isProduction && usesSandbox) {
    throw new StartError(
      'NODE_ENV=production does not start the registrar sandbox: set REGISTRAR_URL, REGISTRAR_API_USER, REGISTRAR_API_KEY and REGISTRAR_CLIENT_IP, or unset NODE_ENV.',
    )
  }
  return { dataDir: resolve(root, env.DATA_DIR || 'data'), portBase, isProduction, usesSandbox }
}

/** @throws {StartError} if the directory cannot be created or written. */
export async function requireWritable(dataDir: string) {
  try {
    await createDirectory(dataDir)
    accessSync(dataDir, constants.W_OK)
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new StartError(
      `DATA_DIR=${dataDir} cannot be written (${reason}): set DATA_DIR to a directory that you may write to.`,
    )
  }
}

/** @throws {StartError} naming the first port that is in use, or that fetch blocks. */
export async function requireFreePorts(programs: { name: string; port: number }[]) {
  for (const { name, port } of programs) {
    if (await isBlocked(port)) {
      throw new StartError(
        `Browsers refuse port ${port} (${name}): choose other ports, for example PORT_BASE=4001 npm start.`,
      )
    }
    if (await isFree(port)) continue
    throw new StartError(
      `Port ${port} (${name}) is in use: stop the program that has it, or choose other ports, for example PORT_BASE=4001 npm start.`,
    )
  }
}

/** Whether the port is on the list of bad ports (Fetch Standard, 2.9). */
const isBlocked = (port: number) =>
  fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(1000) }).then(
    () => false,
    ({ cause }: Error) => cause instanceof Error && cause.message === 'bad port',
  )

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const { promise, resolve: settle } = Promise.withResolvers<boolean>()
  server.once('error', () => settle(false))
  server.listen(port, '127.0.0.1', () => server.close(() => settle(true)))
  return promise
}
