import type { ServerResponse } from 'node:http'
import type { Breakage } from './faults.ts'

const mebibyte = 1024 * 1024
const xml = 'text/xml; charset=utf-8'

/** Sends a complete answer. */
export function send(reply: ServerResponse, status: number, type: string, body: string): void {
  const bytes = Buffer.from(body)
  reply.writeHead(status, { 'content-type': type, 'content-length': bytes.length })
  reply.end(bytes)
}

/** Sends a complete XML answer. */
export function sendXml(reply: ServerResponse, body: string): void {
  send(reply, 200, xml, body)
}

/** Sends an answer as the fault demands; `body` is the answer without the fault. */
export function sendBroken(reply: ServerResponse, fault: Breakage, body: string): void {
  switch (fault.kind) {
    case 'late':
    case 'lost':
    case 'reset':
      reply.destroy()
      return
    case 'cut':
      cut(reply, Buffer.from(body), fault)
      return
    case 'hang':
      hang(reply, Buffer.from(body), fault.at)
      return
    case 'junk':
      void flood(reply, fault.mib)
      return
    case 'html':
      send(reply, fault.status, 'text/html; charset=utf-8', page(fault.status))
      return
    case 'status':
      send(reply, fault.status, 'text/plain; charset=utf-8', fault.message)
      return
    default:
      sendXml(reply, alter(body, fault.kind))
  }
}

function alter(body: string, kind: Breakage['kind']): string {
  switch (kind) {
    case 'empty':
      return ''
    case 'no_close':
      return body.slice(0, body.lastIndexOf('</ApiResponse>'))
    case 'no_email_type':
      return body.replace(/ EmailType="[^"]*"/, '')
    case 'is_success_false':
      return body.replace(/ (IsSuccess|Updated)="true"/, ' $1="false"')
    case 'status_error_without_errors':
      return body.replace('<ApiResponse Status="OK"', '<ApiResponse Status="ERROR"')
    case 'doctype':
      return body
        .replace('<ApiResponse', '<!DOCTYPE ApiResponse [<!ENTITY who "SANDBOX99">]>\r\n$&')
        .replace('<Server>SANDBOX01<', '<Server>&who;<')
    default:
      return body
  }
}

// Bypasses Node's framing, which does not let a body end early.
function cut(
  { socket }: ServerResponse,
  body: Buffer,
  { at, framing }: Extract<Breakage, { kind: 'cut' }>,
): void {
  const length = framing === 'length' ? `Content-Length: ${body.length}\r\n` : ''
  socket?.write(`HTTP/1.1 200 OK\r\nContent-Type: ${xml}\r\n${length}Connection: close\r\n\r\n`)
  socket?.end(body.subarray(0, at ?? body.length / 2))
}

function hang(reply: ServerResponse, body: Buffer, at: number | undefined): void {
  reply.writeHead(200, { 'content-type': xml, 'content-length': body.length })
  reply.write(body.subarray(0, Math.min(at ?? body.length / 2, body.length - 1)))
}

async function flood(reply: ServerResponse, mib: number): Promise<void> {
  reply.writeHead(200, { 'content-type': xml })
  reply.write('<?xml version="1.0" encoding="utf-8"?>\r\n<ApiResponse Status="OK">\r\n<!-- ')
  const filler = Buffer.alloc(mebibyte, 'noise, not an answer. ')
  for (let sent = 0; sent < mib && !reply.destroyed; sent++) {
    if (!reply.write(filler)) await drained(reply)
  }
  reply.end()
}

// A client that gives up closes instead of draining.
function drained(reply: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      reply.off('drain', done).off('close', done)
      resolve()
    }
    reply.on('drain', done).on('close', done)
  })
}

function page(status: number): string {
  const title = status < 400 ? 'One moment, please' : 'The service is not available'
  const head = `<meta charset="utf-8"><title>${title}</title>`
  return `<!doctype html>\n<html lang="en"><head>${head}</head><body><h1>${title}</h1><br></body></html>\n`
}
