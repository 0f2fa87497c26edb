import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'

/** Resolves when a program listens on a port of this machine. @throws with its output if it ends before. */
export async function untilListening(port: number, program: ChildProcess): Promise<void> {
  let output = ''
  for (const stream of [program.stdout, program.stderr])
    stream?.on('data', (chunk) => {
      output += chunk
    })
  const ended = once(program, 'close')
  while (program.exitCode === null && program.signalCode === null) {
    if (await accepts(port)) return
    await Promise.race([ended, new Promise((wake) => setTimeout(wake, 20))])
  }
  await ended
  throw new Error(`${program.spawnfile} ended before it listened:\n${output}`)
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}
