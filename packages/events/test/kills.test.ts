import { DatabaseUnavailableError, type Sql } from '@domains-and-files/persistence'
import { expect, it } from 'vitest'
import { forms, start } from './support/databases.ts'
import { append, openProcess, openReceiver } from './support/deliveries.ts'

// EVENT_KILLS=200 makes the campaign long.
const kills = Number(process.env.EVENT_KILLS ?? 6)

/** The database of a process that can be killed: from then on nothing of it is carried out. */
function killable(database: Sql, isKilled: () => boolean): Sql {
  return new Proxy(database, {
    get: (target, key) => {
      const member = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return async (...args: unknown[]) => {
        if (isKilled()) throw new DatabaseUnavailableError(new Error('killed'))
        return member.apply(target, args)
      }
    },
  })
}

it.each(forms)(
  `a webhook gets every event from processes that are killed ${kills} times, repeated only with its id, in $form`,
  {
    timeout: 240_000 + kills * 5_000,
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
    await store.create(
      { url: receiver.url('/') },
      { createdBy: 'admin', position: await log.end() },
    )
    let count = 0
    for (let kill = 1; kill <= kills; kill++) {
      for (const until = count + 3; count < until; count++) await append(db, count)
      const last = receiver.received.length + 1 + (kill % 3)
      let isKilled = false
      onArrival = () => {
        if (receiver.received.length < last) return
        // Before the process gets the answer, or while it records it.
        if (kill % 2 === 0) isKilled = true
        else setImmediate(() => (isKilled = true))
      }
      const { close } = openProcess(
        killable(db.sql, () => isKilled),
        stack,
      )
      await receiver.count(last)
      isKilled = true
      await close()
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
