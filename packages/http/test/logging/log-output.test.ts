import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test.each([
  ['on its own', '', 0],
  ['by process.exit', 'process.exit(3)', 3],
  ['by an error that nobody caught', 'throw new Error("uncaught")', 1],
])(
  'every line that was logged is there, in order, when the process ended %s',
  async (_how, end, status) => {
    const script = `log.info({ at: 'ä' }, 'first'); for (let i = 0; i < 20000; i += 1) log.info('more')
    log.warn('last'); ${end}`

    const ended = await run(script)

    const lines = ended.stdout.split('\n')
    expect(lines.length).toBe(20_003)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'first', at: 'ä' })
    expect(JSON.parse(lines[20_001] ?? '')).toMatchObject({ msg: 'last' })
    expect(ended.status).toBe(status)
  },
)

test('lines are there at the end of the turn that logged them, whatever follows', async () => {
  const script = `log.info('first')
    setImmediate(() => process.kill(process.pid, 'SIGKILL'))`

  const ended = await run(script)

  expect(JSON.parse(ended.stdout)).toMatchObject({ msg: 'first' })
})

async function run(script: string) {
  const log = new URL('../../src/logging/logger.ts', import.meta.url).href
  const whole = `import { createLogger } from '${log}'
    const log = createLogger({ name: 'things', level: 'info' })
    ${script}`
  const args = ['--input-type=module', '-e', whole]
  return promisify(execFile)(process.execPath, args, { maxBuffer: 16 * 1024 * 1024 }).then(
    ({ stdout }) => ({ stdout, status: 0 }),
    ({ stdout, code }: { stdout: string; code: number }) => ({ stdout, status: code }),
  )
}
