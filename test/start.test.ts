import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const root = join(import.meta.dirname, '..')

test('npm start brings everything up, and the lines that it prints work when pasted', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'start-'))
  const portBase = await findPorts(3)
  const child = spawn(process.execPath, ['scripts/start.ts'], {
    cwd: root,
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      PORT_BASE: String(portBase),
      NODE_ENV: 'development',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(async () => {
    child.kill()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const text = await readUntil(child, 'Ctrl-C stops everything.')
  const lines = text.slice(text.indexOf('# log in'), text.indexOf('Ctrl-C stops everything.'))

  const { stdout } = await promisify(execFile)('bash', ['-c', lines], { cwd: dataDir })

  const answers = stdout.split('\n').filter((line) => line.startsWith('{'))
  const told = answers.map((line) => JSON.parse(line))
  const [list, before, added, zone, replaced, restored] = told
  const [uploaded, batch, files, found, tree, version, current] = told.slice(6)
  expect(list.domains).toHaveLength(3)
  expect(before.hosts.length).toBeGreaterThan(3)
  expect(added).toMatchObject({ name: 'hello', type: 'A' })
  expect(zone.hosts).toHaveLength(before.hosts.length + 1)
  expect(replaced.hosts).toHaveLength(1)
  expect(restored.hosts).toEqual(zone.hosts)
  expect(uploaded).toMatchObject({ path: 'notes/hello.txt', size: 13 })
  expect(batch.files).toHaveLength(2)
  expect(files.pagination).toMatchObject({ total_items: 3 })
  expect(found.files).toEqual([uploaded])
  expect(tree.tree).toMatchObject({ file_count: 3 })
  expect(current).toEqual(version)
  expect(stdout).toMatch(/^Hello, files\nHello\n/m)
  expect(stdout.trimEnd()).toMatch(/\n204$/)
  expect(stdout).not.toContain('"request_id"')

  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
}, 60_000)

async function readUntil(child: ChildProcess, end: string): Promise<string> {
  let text = ''
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const read = (chunk: Buffer) => {
    text += chunk
    if (text.includes(end)) resolve(text)
  }
  child.stdout?.on('data', read)
  child.stderr?.on('data', read)
  child.on('exit', () => reject(new Error(`it ended before it was up:\n${text}`)))
  return promise
}

// That many free ports in a row, as the services have them.
async function findPorts(count: number): Promise<number> {
  for (;;) {
    const base = 20_000 + Math.floor(Math.random() * 20_000)
    const free = await Promise.all(Array.from({ length: count }, (_, at) => isFree(base + at)))
    if (free.every(Boolean)) return base
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = net.createServer()
  const { promise, resolve } = Promise.withResolvers<boolean>()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
