import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { until } from '../support/step.ts'

interface Run {
  command: string
  args: string[]
  env?: Record<string, string>
  cwd?: string
}

/** Runs a program to its end. @returns what it printed. @throws {Error} with that, if it fails. */
export async function runProgram({ command, args, env, cwd }: Run): Promise<string> {
  const child = spawn(command, args, { env: { ...process.env, ...env }, cwd, stdio: 'pipe' })
  const text: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => text.push(String(chunk)))
  const [code] = await once(child, 'close')
  const printed = text.join('')
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${printed}`)
  return printed
}

/** Starts a program that serves until it is disposed, and waits until `isReady`. */
export async function startProgram(
  { command, args, env, cwd }: Run,
  isReady: () => Promise<boolean>,
): Promise<AsyncDisposable> {
  const child = spawn(command, args, { env: { ...process.env, ...env }, cwd, stdio: 'pipe' })
  const ended = once(child, 'exit')
  const text: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => text.push(String(chunk)))
  await until(`${command} is ready`, async () => {
    if (child.exitCode !== null) throw new Error(`${command} ended:\n${text.join('')}`)
    return (await isReady().catch(() => false)) || undefined
  })
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
