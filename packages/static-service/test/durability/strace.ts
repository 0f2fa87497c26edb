// The first part of `npm run test:power`, on Linux with strace: watches the system calls of a running service, and says whether
// before each 201 has left its socket all was flushed that it stands for. Under `eatmydata`, which makes flushes do
// nothing, it must say no.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { run } from '../support/program.ts'

/** A system call, and the numbers of the lines at which it began and ended. */
interface Call {
  name: string
  text: string
  begun: number
  ended: number
}

const uploads = 20

// A small content is flushed with the content database, a large one with its file and directory.
const isLarge = (count: number) => count % 2 === 1

const calls = 'fsync,fdatasync,rename,renameat,renameat2,mkdir,write,pwrite64,sendto,writev'

const hasStrace = [['strace', '-V'] as const, ['apt-get', 'install', '-y', '-qq', 'strace'] as const].some(
  ([command, ...args]) => spawnSync(command, args).status === 0,
)
if (hasStrace) await watchFlushes()
else {
  process.stdout.write('NOT RUN: whether answers wait for their flush: strace cannot be installed\n')
  process.exitCode = 2
}

async function watchFlushes() {
  const folder = mkdtempSync(join(tmpdir(), 'static-strace-'))
  try {
    const found = judge(readTrace(await trace(folder)))
    process.stdout.write(`${found.join('\n')}\n`)
    const flushed = found.filter((line) => line.endsWith(': flushed'))
    process.exitCode = flushed.length === uploads ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function trace(folder: string): Promise<string> {
  const file = join(folder, 'trace')
  const program = await run(join(folder, 'data'), { LD_PRELOAD: process.env.LD_PRELOAD ?? '' })
  try {
    const token = await program.logIn()
    const options = ['-f', '-y', '-s', '2000', '-e', `trace=${calls}`, '-o', file]
    const strace = spawn('strace', [...options, '-p', String(program.child.pid)])
    await once(strace.stderr, 'data') // It says that it is attached.
    for (let count = 0; count < uploads; count += 1) {
      const content = `content ${count}`.padEnd(isLarge(count) ? 40_000 : 0)
      const { status } = await program.send(token, 'upload', [{ name: 'file', content, filename: `${count}.bin` }])
      if (status !== 201) throw new Error(`an upload was answered ${status}`)
    }
    const ended = once(strace, 'exit')
    strace.kill('SIGINT')
    await ended
  } finally {
    await program.kill()
  }
  return readFileSync(file, 'utf8')
}

function readTrace(text: string): Call[] {
  const found: Call[] = []
  const open = new Map<string, Call>()
  for (const [at, line] of text.split('\n').entries()) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, name = ''] = /^(?:<\.\.\. )?(\w+)/.exec(rest) ?? []
    const resumed = rest.startsWith('<...') ? open.get(thread) : undefined
    if (resumed) {
      resumed.ended = at
      continue
    }
    const isOpen = rest.endsWith('<unfinished ...>')
    const call = { name, text: rest, begun: at, ended: isOpen ? Infinity : at }
    if (isOpen) open.set(thread, call)
    found.push(call)
  }
  return found
}

/** One line for each 201, in the order in which they were sent. */
function judge(found: Call[]): string[] {
  let since = 0
  let count = -1
  return found.flatMap((answer) => {
    if (!answer.text.includes('HTTP/1.1 201')) return []
    const before = found.filter(({ begun }) => begun >= since && begun < answer.begun)
    since = answer.begun
    count += 1
    const rename = before.find(({ name, text }) => /^rename/.test(name) && text.includes('/blobs/'))
    const [draft = '', content = ''] = [...(rename?.text.matchAll(/"([^"]+)"/g) ?? [])].map(([, path]) => path)
    const renamed = { begun: rename?.begun ?? 0, ended: rename?.ended ?? Infinity }
    const isWalFlushed = (wal: string) => isFlushed(before, wal, lastWrite(before, wal), answer.begun)
    const missing = [
      isLarge(count) && !isFlushed(before, draft, lastWrite(before, draft), renamed.begun) ? 'the content' : '',
      isLarge(count) && !isFlushed(before, dirname(content), renamed.ended, answer.begun) ? 'its folder' : '',
      isLarge(count) || isWalFlushed('/contents.sqlite-wal') ? '' : 'the content database',
      isWalFlushed('/static-service.sqlite-wal') ? '' : 'the catalog',
    ].filter(Boolean)
    const said = missing.length === 0 ? 'flushed' : `NOT FLUSHED: ${missing.join(', ')}`
    return [`201 for ${basename(content).slice(0, 12)}…: ${said}`]
  })
}

/** Whether a flush of the file whose path ends so lies between the lines. */
function isFlushed(calls: Call[], path: string, from: number, until: number): boolean {
  return calls.some(
    ({ name, text, begun, ended }) =>
      /^f(?:data)?sync$/.test(name) && text.includes(`${path}>`) && begun > from && ended < until,
  )
}

function lastWrite(calls: Call[], path: string): number {
  const isWrite = ({ name, text }: Call) => /write/.test(name) && text.includes(`${path}>`)
  return calls.findLast(isWrite)?.ended ?? Infinity
}
