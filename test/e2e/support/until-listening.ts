import { once } from 'node:events'
import { connect } from 'node:net'

/** Resolves when a port of this machine accepts connections. */
export async function untilListening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await new Promise((wake) => setTimeout(wake, 20))
  }
}
