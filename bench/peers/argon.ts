// The limit of a login: one argon2id of the cost that our users' passwords have. Prints the milliseconds of each.
import { argon2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { defaultCost } from '../../packages/auth/src/login/password.ts'

const derive = promisify(argon2)
const { memory, passes, lanes } = defaultCost
const end = performance.now() + Number(process.argv[2] ?? 3) * 1000
const times: number[] = []
while (performance.now() < end) {
  const began = performance.now()
  const message = 'measured again and again'
  const nonce = randomBytes(16)
  await derive('argon2id', { message, nonce, memory, passes, parallelism: lanes, tagLength: 32 })
  times.push(performance.now() - began)
}
process.stdout.write(JSON.stringify(times))
