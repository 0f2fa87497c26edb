import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { exitWithParent, slowClients } from '../../../../test/support/everything.ts'
import { password } from '../../../../test/support/test-users.ts'
import { type Asked, ask, boundary, logIn, type Part, writeForm } from './start.ts'

export interface Program {
  child: ChildProcess
  port: number
  output: () => string
  ask: (asked: Asked) => ReturnType<typeof ask>
  send: (token: string, to: string, parts: Part[], headers?: Record<string, string>) => ReturnType<typeof ask>
  logIn: () => Promise<string>
  /** Ends it at once, as a power cut would. */
  kill: () => Promise<void>
}

/** The service as a process of its own, once it listens. */
export async function run(dataDir: string, env: Record<string, string> = {}): Promise<Program> {
  const main = join(import.meta.dirname, '../../dist/main.js')
  const child = spawn(process.execPath, ['--import', exitWithParent, main], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      DATA_DIR: dataDir,
      PORT: '0',
      JWT_SECRET: 'a secret of these tests that is long enough',
      ADMIN_USERNAME: 'admin',
      ADMIN_PASSWORD: password,
      ...slowClients,
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit')
  let written = ''
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      written += chunk
      const [, port] = /listening at http:\/\/127\.0\.0\.1:(\d+)/.exec(written) ?? []
      if (port) resolve(Number(port))
    })
  }
  // Not at its exit: what it has written may not have been read by then.
  child.on('close', () => reject(new Error(`it ended:\n${written}`)))
  const port = await promise
  return {
    child,
    port,
    output: () => written,
    ask: (asked) => askUnshed(port, asked),
    send: (token, to, parts, headers) =>
      askUnshed(port, {
        method: 'POST',
        path: `/api/files/${to}`,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': `multipart/form-data; boundary=${boundary}`,
          ...headers,
        },
        body: writeForm(parts),
      }),
    logIn: () => logIn(port, 'admin'),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Asks again while the process sheds load, which it does on a busy machine. It has done nothing about such a request. */
async function askUnshed(port: number, asked: Asked) {
  for (;;) {
    const answer = await ask(port, asked)
    if (!answer.body.detail?.startsWith('Service overloaded')) return answer
  }
}
