import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reservePorts } from '../../support/ports.ts'
import { untilListening } from '../support/until-listening.ts'

/** Ports of the replicas of docs/scaling/nginx.conf, by their names there. */
type Replicas = Record<string, number>

export interface LoadBalancer extends AsyncDisposable {
  domainPort: number
  staticPort: number
}

/** nginx with docs/scaling/nginx.conf, of which only addresses and paths are replaced. */
export async function startLoadBalancer(replicas: Replicas): Promise<LoadBalancer> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  const [consolePort, domainPort, staticPort] = [await reservePorts(), await reservePorts(), await reservePorts()]
  const example = readFileSync(join(import.meta.dirname, '../../../docs/scaling/nginx.conf'), 'utf8')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const text = example
    .replace(/server static-service-2.*/, (line) => `${line} ${line.replace('-2', '-3')}`)
    .replace('http {', `http { ${paths.join(' ')}`)
    .replace(/server ([a-z0-9-]+):\d+/g, (line, name) => {
      const port = replicas[name]
      if (port === undefined) throw new Error(`no replica for ${line}`)
      return `server 127.0.0.1:${port}`
    })
    .replace('listen 3000', `listen 127.0.0.1:${consolePort}`)
    .replace('listen 3001', `listen 127.0.0.1:${domainPort}`)
    .replace('listen 3002', `listen 127.0.0.1:${staticPort}`)
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, text)
  const args = ['-p', folder, '-e', 'stderr', '-c', file, '-g', `daemon off; pid ${folder}/pid;`]
  const child = spawn('nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  await untilListening(staticPort, child)
  return {
    domainPort,
    staticPort,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
