import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { script, start } from '../harness/program.ts'
import type { BareAnswer } from './bare.ts'

/** nginx with what its manuals advise for static files; WebDAV PUT at /dav/ where there is a folder for it. */
export function startNginx(folder: string, root: string, davRoot?: string) {
  const config = (port: number) => `
    daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.err;
    user ${userInfo().username};
    events { worker_connections 1024; }
    http {
      include /etc/nginx/mime.types;
      default_type application/octet-stream;
      access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;
      open_file_cache max=200000 inactive=60s; open_file_cache_valid 60s;
      client_max_body_size 0; client_body_temp_path ${folder}/nginx-body;
      server {
        listen 127.0.0.1:${port} backlog=1024;
        location = / { return 200 up; }
        location /static/ { alias ${root}/; }
        ${davRoot ? `location /dav/ { alias ${davRoot}/; dav_methods PUT; }` : ''}
      }
    }`
  return start({ name: 'nginx', folder, run: (port) => ['nginx', '-c', write(port)] })

  function write(port: number) {
    const file = join(folder, `nginx-${port}.conf`)
    writeFileSync(file, config(port))
    return file
  }
}

/** Caddy's file_server with its defaults: no access log. */
export function startCaddy(folder: string, root: string) {
  const config = (port: number) => `
{
  admin off
  auto_https off
}
http://127.0.0.1:${port} {
  respond / up
  handle_path /static/* {
    root * ${root}
    file_server
  }
}
`
  return start({ name: 'caddy', folder, run: (port) => ['caddy', 'run', '--config', write(port)] })

  function write(port: number) {
    const file = join(folder, 'Caddyfile')
    writeFileSync(file, config(port))
    return file
  }
}

export function startFastifyStatic(folder: string, root: string) {
  const run = () => [...script('peers/fastify-static.ts'), root]
  return start({ name: 'fastify-static', folder, run })
}

/** A bare route of Fastify that gives the answer that ours gave: the limit of what Fastify can do. */
export async function startBare(folder: string, answer: BareAnswer) {
  const file = join(folder, 'answer.json')
  writeFileSync(file, JSON.stringify(answer))
  const program = await start({
    name: 'bare',
    folder,
    run: () => [...script('peers/bare.ts'), file],
  })
  const token = await (await fetch(`${program.url}/token`)).text()
  return { ...program, token }
}
