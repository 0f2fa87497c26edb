import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'

// What a start loads decides how long it takes.
const loadedLater = [
  '@aws-sdk/client-s3',
  'fast-xml-parser',
  'file-type',
  'jose',
  'openid-client',
  'pg',
  '@prometheus-io/client',
  'swagger-ui-dist',
  'undici',
]

const printModules = `
  import { registerHooks } from 'node:module'
  registerHooks({ load: (url, context, next) => { console.error('module ' + url); return next(url, context) } })`

test.each(['static-service', 'domain-service'])(
  '%s starts without the packages that only some requests or settings need',
  async (name) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'modules-'))
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
    const main = join(import.meta.dirname, '../../packages', name, 'src/main.ts')
    const hooks = `data:text/javascript,${encodeURIComponent(printModules)}`
    const child = spawn(process.execPath, ['--import', hooks, main], {
      env: { PATH: process.env.PATH, PORT: '0', DATA_DIR: dataDir },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const ended = once(child, 'exit')
    const printed = text(child.stderr)
    for await (const line of child.stdout) if (String(line).includes('listening')) child.kill()
    await ended

    const modules = (await printed).split('\n').filter((line) => line.startsWith('module '))
    const has = (each: string) => modules.some((url) => url.includes(`/node_modules/${each}/`))
    expect(has('fastify')).toBe(true)
    expect(loadedLater.filter(has)).toEqual([])
  },
)
