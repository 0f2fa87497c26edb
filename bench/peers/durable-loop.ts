// The limit of durable storing: 4 KiB written, flushed, renamed, the folder flushed, 16 at once, and nothing else.
// `node durable-loop.ts <folder> <seconds>` prints how many there were in a second.
import { randomBytes } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'

const [, , folder = '', seconds = '3'] = process.argv
const bytes = randomBytes(4096)
const began = performance.now()
const end = began + Number(seconds) * 1000
let stored = 0

await Promise.all(Array.from({ length: 16 }, (_, lane) => storeAgainAndAgain(lane)))
process.stdout.write(String(stored / ((performance.now() - began) / 1000)))

async function storeAgainAndAgain(lane: number) {
  for (let count = 0; performance.now() < end; count += 1) {
    const draft = join(folder, `${lane}-${count}.draft`)
    const file = await open(draft, 'wx')
    await file.write(bytes)
    await file.sync()
    await file.close()
    await rename(draft, join(folder, `${lane}-${count}`))
    const directory = await open(folder, 'r')
    await directory.sync()
    await directory.close()
    stored += 1
  }
}
