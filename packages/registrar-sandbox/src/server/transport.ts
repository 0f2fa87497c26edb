import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { Breakage } from './faults.ts'

const mebibyte = 1024 * 1024
const xml = 'text/xml; charset=utf-8'

/** Sends a complete answer. */
export function send(reply: ServerResponse, status: number, type: string, body: string): void {
  const bytes = Buffer.from(body)
  reply.writeHead(status, { 'content-type': type, 'content-length': bytes.length })
  reply.end(bytes)
}

/** Sends an XML answer, as a fault demands if there is one. */
export function sendXml(reply: ServerResponse, body: string, fault?: Breakage): void {
  if (!fault) {
    send(reply, 200, xml, body)
    return
  }
  const { kind } = fault
  if (kind === 'late' || kind === 'lost' || kind === 'reset') reply.destroy()
  else if (kind === 'cut') cut(reply, Buffer.from(body), fault)
  else if (kind === 'hang') hang(reply, Buffer.from(body), fault.at)
  else if (kind === 'junk') flood(reply, fault.mib)
  else if (kind === 'html') send(reply, fault.status, 'text/html; charset=utf-8', page)
  else if (kind === 'status') send(reply, fault.status, 'text/plain; charset=utf-8', fault.message)
  else send(reply, 200, xml, altered[kind]?.(body) ?? body)
}

const altered: Partial<Record<Breakage['kind'], (body: string) => string>> = {
  empty: () => '',
  no_close: (body) => body.slice(0, body.lastIndexOf('</ApiResponse>')),
  no_email_type: (body) => body.replace(/ EmailType="[^"]*"/, ''),
  is_success_false: (body) => body.replace(/ (IsSuccess|Updated)="true"/, ' $1="false"'),
  status_error_without_errors: (body) =>
    body.replace('<ApiResponse Status="OK"', '<ApiResponse Status="ERROR"'),
  doctype: (body) =>
    body
      .replace('<ApiResponse', '<!DOCTYPE ApiResponse [<!ENTITY who "SANDBOX99">]>\r\n$&')
      .replace('<Server>SANDBOX01<', '<Server>&who;<'),
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

function flood(reply: ServerResponse, mib: number): void {
  reply.writeHead(200, { 'content-type': xml })
  const start = '<?xml version="1.0" encoding="utf-8"?>\r\n<ApiResponse Status="OK">\r\n<!-- '
  const filler = Buffer.alloc(mebibyte, 'noise, not an answer. ')
  // Errors are ignored: the client may disconnect.
  pipeline([start, ...Array.from({ length: mib }, () => filler)], reply, () => undefined)
}

const page =
  '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>One moment</title></head><body><br></body></html>\n'
