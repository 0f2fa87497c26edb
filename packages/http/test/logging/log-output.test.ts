import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const logger = new URL('../../src/logging/logger.ts', import.meta.url).href

const argsOf = (script: string) => [
  '--input-type=module',
  '-e',
  `import { createLogger } from '${logger}'
   const log = createLogger({ name: 'things', level: 'info' })
   ${script}`,
]

test.each([
  ['on its own', '', 0],
  ['by process.exit', 'process.exit(3)', 3],
  ['by an uncaught error', 'throw new Error("uncaught")', 1],
])('all lines are written, in order, when the process ends %s', async (_how, end, status) => {
  const script = `log.info({ at: 'ä' }, 'first')
    for (let i = 0; i < 20000; i += 1) log.output.write('{"msg":"more"}\\n', { isBatched: true })
    log.warn('last'); ${end}`

  const ended = await runToEnd(script)

  const lines = ended.stdout.split('\n')
  expect(lines.length).toBe(20_003)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', msg: 'first', at: 'ä' })
  expect(JSON.parse(lines[20_001] ?? '')).toMatchObject({ level: 'warn', msg: 'last' })
  expect(ended.status).toBe(status)
})

test('loggers of one process share one queue, which keeps their order', async () => {
  const script = `for (let i = 0; i < 20; i += 1) {
      const other = createLogger({ name: 'others', level: 'info' })
      other.output.write(JSON.stringify({ i }) + '\\n', { isBatched: true })
      log.info({ i })
    }
    console.error(process.listenerCount('exit'))`
  const child = spawn(process.execPath, argsOf(script))

  const [stdout, { stderr }] = await Promise.all([text(child.stdout), readToEnd(child)])

  const lines = stdout.trim().split('\n')
  expect(lines.map((line) => JSON.parse(line).i)).toEqual(Array.from({ length: 40 }, (_, at) => Math.floor(at / 2)))
  expect(stderr).toBe('1\n')
})

test.each([
  ['a line', "log.info('here')"],
  ['a batched line', `log.output.write('{"msg":"here"}\\n', { isBatched: true })`],
])('%s is written while the process runs, so SIGKILL cannot lose it later', async (_what, act) => {
  const child = spawn(process.execPath, argsOf(`${act}; setInterval(() => {}, 1000)`))

  const [line] = await once(createInterface(child.stdout), 'line')
  child.kill('SIGKILL')
  await once(child, 'exit')

  expect(JSON.parse(line)).toMatchObject({ msg: 'here' })
})

test('a device without space loses lines, counts them, and does not end the process', async () => {
  const device = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, argsOf(`log.info('one'); log.info('two'); ${report}`), {
    stdio: ['ignore', device, 'pipe'],
  })
  closeSync(device)

  const { stderr, status } = await readToEnd(child)

  expect([stderr, status]).toEqual(['dropped 2\n', 0])
})

// Reports the first dropped lines on standard error.
const report = `
  while (log.output.droppedLines === 0) await new Promise((wake) => setTimeout(wake, 5))
  console.error('dropped', log.output.droppedLines)`

describe('a file that cannot grow', () => {
  test('loses whole lines, and takes new ones on lines of their own once there is space', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'log-output-'))
    const path = join(folder, 'log')
    const file = openSync(path, 'a')
    // ulimit counts blocks of 512 bytes: the write that reaches the limit is cut in the middle of a line.
    const script = `import { truncateSync } from 'node:fs'
      for (let i = 0; i < 100; i += 1) log.output.write(JSON.stringify({ i, filler: 'x'.repeat(100) }) + '\\n', { isBatched: true })
      ${report}
      truncateSync('${path}')
      log.info('after')`
    const shell = ['-c', 'ulimit -f 4; exec "$@"', 'sh', process.execPath, ...argsOf(script)]
    const child = spawn('sh', shell, { stdio: ['ignore', file, 'pipe'] })
    closeSync(file)

    const { stderr, status } = await readToEnd(child)
    const written = readFileSync(path, 'utf8')
    rmSync(folder, { recursive: true })

    expect(status).toBe(0)
    expect(stderr).toMatch(/^dropped [89]\d\n$/)
    expect(
      written
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).msg),
    ).toEqual(['after'])
  })
})

test('a reader that stops reading holds up neither the event loop nor the end of the process', async () => {
  const script = `
    for (let i = 0; i < 50; i += 1) {
      for (let j = 0; j < 1000; j += 1) log.output.write(JSON.stringify({ filler: 'x'.repeat(200) }) + '\\n', { isBatched: true })
      await new Promise((wake) => setTimeout(wake, 1))
    }
    ${report}`
  const child = spawn(process.execPath, argsOf(script))

  const ended = once(child, 'exit')
  const stderr = await text(child.stderr)
  const [status] = await ended

  expect(stderr).toMatch(/^dropped \d+\n$/)
  expect(status).toBe(0)
})

async function runToEnd(script: string) {
  const options = { maxBuffer: 16 * 1024 * 1024 }
  return promisify(execFile)(process.execPath, argsOf(script), options).then(
    ({ stdout }) => ({ stdout, status: 0 }),
    ({ stdout, code }: { stdout: string; code: number }) => ({ stdout, status: code }),
  )
}

async function readToEnd(child: ChildProcess) {
  const ended = once(child, 'exit')
  const stderr = child.stderr ? await text(child.stderr) : ''
  const [status] = await ended
  return { stderr, status }
}
