import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { forms, start } from './support/databases.ts'
import { append, openProcess, openReceiver } from './support/deliveries.ts'

// EVENT_KILLS=200 makes the campaign long.
const kills = Number(process.env.EVENT_KILLS ?? 3)

const program = join(import.meta.dirname, 'support/delivering-process.ts')

it.each(forms)(
  `a webhook gets every event from processes that are killed ${kills} times, repeated only with its id, in $form`,
  {
    timeout: 1_200_000 + kills * 30_000,
  },
  async ({ open }) => {
    await using stack = new AsyncDisposableStack()
    const db = stack.use(await open())
    let onArrival = () => {}
    const receiver = stack.use(
      await openReceiver(() => {
        onArrival()
        return 200
      }),
    )
    const { store, log } = openProcess(db.sql, stack, { isIdle: true })
    await store.create({ url: receiver.url('/') }, { createdBy: 'admin', position: await log.end() })
    let count = 0
    for (let kill = 1; kill <= kills; kill++) {
      for (const until = count + 3; count < until; count++) await append(db, count)
      const last = receiver.received.length + 1 + (kill % 3)
      const child = spawn(process.execPath, [program, JSON.stringify(db.location())], {
        stdio: ['pipe', 'ignore', 'inherit'],
      })
      onArrival = () => {
        if (receiver.received.length < last) return
        // Before the process gets the answer, or while it records it.
        if (kill % 2 === 0) child.kill('SIGKILL')
        else setImmediate(() => child.kill('SIGKILL'))
      }
      expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
      await db.setTime(start + kill * 31_000) // The end of its claim.
    }
    onArrival = () => {}
    openProcess(db.sql, stack)
    const numbers = () => [...new Set(receiver.received.map(({ body }) => body.data?.number))]
    await expect.poll(() => numbers().length).toBe(count)

    const ids = new Map<number | undefined, Set<string>>()
    for (const { body, id } of receiver.received)
      ids.set(body.data?.number, (ids.get(body.data?.number) ?? new Set()).add(id))
    expect(numbers()).toEqual(Array.from({ length: count }, (_, number) => number))
    expect([...ids.values()].every((each) => each.size === 1)).toBe(true)
  },
)
