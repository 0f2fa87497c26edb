import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { bundle } from '../../scripts/build/bundle.ts'
import { commandOf, digestSources, isBuilt, recordBuild } from '../../scripts/build/sources.ts'

let root: string
let program: string

function write(file: string, text: string) {
  mkdirSync(dirname(join(root, file)), { recursive: true })
  writeFileSync(join(root, file), text)
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'build-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  program = join(root, 'packages/program')
  write('pnpm-lock.yaml', 'lockfileVersion: 1')
  write('packages/program/package.json', '{"type":"module"}')
  write('packages/program/src/main.ts', "import { hear } from './threads/hear.ts'\nawait hear()")
  write(
    'packages/program/src/threads/hear.ts',
    `import { Worker } from 'node:worker_threads'
     export function hear(): Promise<void> {
       const worker = new Worker(new URL('./speak.ts', import.meta.url))
       return new Promise((done) => worker.on('message', (text: string) => { console.log(text); done() }))
     }`,
  )
  write(
    'packages/program/src/threads/speak.ts',
    "import { parentPort } from 'node:worker_threads'\nparentPort?.postMessage('spoken by a thread')",
  )
})

test('a bundle runs, with its worker threads, without the sources', async () => {
  await bundle(program)
  rmSync(join(program, 'src'), { recursive: true })

  const { stdout } = await promisify(execFile)(process.execPath, [join(program, 'dist/main.js')])

  expect(stdout).toBe('spoken by a thread\n')
})

test('a bundle that names a missing script is not built', async () => {
  rmSync(join(program, 'src/threads/speak.ts'))

  await expect(bundle(program)).rejects.toThrow('./speak.ts, which does not exist')
})

test('a module that is imported for its effect is not left out in silence', async () => {
  write('packages/program/src/effect.ts', "console.log('an effect')")
  write('packages/program/src/main.ts', "import './effect.ts'")

  await expect(bundle(program)).rejects.toThrow('imports a module for its effect')
})

test.each(['domain-service', 'static-service'])(
  '%s does not load the WebSocket client with each start, as an ES import of node:http does',
  (name) => {
    const dist = join(import.meta.dirname, `../../packages/${name}/dist/service.js`)
    expect(readFileSync(dist, 'utf8')).not.toMatch(/^import .* from ["']node:http["']/m)
  },
)

test('a program is built until its build is recorded, and its files may be older than that', async () => {
  const digest = digestSources(root)
  await bundle(program)
  expect(isBuilt(program, digest)).toBe(false)

  recordBuild(program, digest)
  utimesSync(join(program, 'src/main.ts'), 1, 1)

  expect(isBuilt(program, digestSources(root))).toBe(true)
})

test.each([
  'packages/program/src/main.ts',
  'packages/program/src/new.ts',
  'packages/program/package.json',
  'scripts/build/bundle.ts',
  'pnpm-lock.yaml',
])('after a change of %s it is built again', async (file) => {
  await bundle(program)
  recordBuild(program, digestSources(root))

  write(file, '{}')

  expect(isBuilt(program, digestSources(root))).toBe(false)
})

test('a command runs from its bundle, and from the sources where they have changed', () => {
  const command = () => commandOf(root, 'program', 'data-command')
  mkdirSync(join(program, 'dist'))

  const before = command()
  recordBuild(program, digestSources(root))
  const built = command()
  write('packages/program/src/main.ts', '{}')

  const source = join(program, 'src/maintenance/data-command.ts')
  expect([before, built, command()]).toEqual([source, join(program, 'dist/data-command.js'), source])
})
