import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { script, start } from '../harness/program.ts'
import type { PreparedResponse } from './prepared-response.ts'

/** Whether a server writes a line per request, to a file, as its users configure it. */
export type AccessLogs = 'on' | 'off'

interface ServerOptions {
  /** Served at /static/. */
  root: string
  logs?: AccessLogs
  /** Writable by WebDAV PUT at /dav/. */
  davRoot?: string
}

/** nginx as its manuals advise for static files. */
export function startNginx(folder: string, { root, logs = 'off', davRoot }: ServerOptions) {
  const accessLog = logs === 'on' ? `${folder}/nginx-access.log` : 'off'
  const config = (port: number) => `
    daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.err;
    user ${userInfo().username};
    events { worker_connections 1024; }
    http {
      include /etc/nginx/mime.types;
      default_type application/octet-stream;
      access_log ${accessLog}; sendfile on; tcp_nopush on; keepalive_requests 100000000;
      open_file_cache max=200000 inactive=60s; open_file_cache_valid 60s;
      client_max_body_size 0; client_body_temp_path ${folder}/nginx-body;
      server {
        listen 127.0.0.1:${port} backlog=1024;
        location = / { return 200 up; }
        location /static/ { alias ${root}/; }
        ${davRoot ? `location /dav/ { alias ${davRoot}/; dav_methods PUT; }` : ''}
      }
    }`
  const run = (port: number) => ['nginx', '-c', writeConfig(folder, `nginx-${port}.conf`, config(port))]
  return start({ name: 'nginx', folder, run })
}

/** Caddy's file_server with its defaults; `log` is off by default. */
export function startCaddy(folder: string, { root, logs = 'off' }: ServerOptions) {
  const log = logs === 'on' ? `log {\n output file ${folder}/caddy-access.log\n }` : ''
  const config = (port: number) => `
{
  admin off
  auto_https off
}
http://127.0.0.1:${port} {
  ${log}
  respond / up
  handle_path /static/* {
    root * ${root}
    file_server
  }
}
`
  const run = (port: number) => ['caddy', 'run', '--config', writeConfig(folder, 'Caddyfile', config(port))]
  return start({ name: 'caddy', folder, run })
}

export function startFastifyStatic(folder: string, { root, logs = 'on' }: ServerOptions) {
  const run = () => [...script('peers/fastify-static.ts'), root]
  return start({ name: 'fastify-static', folder, run, env: { ACCESS_LOG: logs } })
}

/** Fastify with one route that gives a prepared response, and a token for it. */
export async function startBare(folder: string, response: PreparedResponse) {
  const file = writeConfig(folder, 'bare.json', JSON.stringify(response))
  const run = () => [...script('peers/bare.ts'), file]
  const program = await start({ name: 'bare', folder, run, env: { ACCESS_LOG: 'on' } })
  const token = await (await fetch(`${program.url}/token`)).text()
  return { ...program, token }
}

/** `node:http` with a prepared response and no log. */
export function startPlainHttp(folder: string, response: PreparedResponse) {
  const file = writeConfig(folder, 'plain.json', JSON.stringify(response))
  const run = () => [...script('peers/plain-http.ts'), file]
  return start({ name: 'plain-http', folder, run, isUp: (status) => status === response.status })
}

function writeConfig(folder: string, name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}
