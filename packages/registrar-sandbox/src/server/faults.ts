import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { z } from 'zod'
import { HostSketch } from '../account/domain.ts'

const Count = z.int().min(0)
const Milliseconds = Count.max(3_600_000)

const match = {
  /** Only calls of this command, in any case; any command if absent. */
  command: z.string().toLowerCase().optional(),
  /** Only calls about this domain; any domain if absent. */
  domain: z.string().toLowerCase().optional(),
  /** Matching calls to skip first. */
  after: Count.default(0),
  /** Matching calls to affect; 0: all of them, until cleared. */
  times: Count.default(1),
}

/** Whether the command is executed, whatever the answer says. */
const executed = z.boolean().default(true)
const notExecuted = z.boolean().default(false)

/** Bytes after which the answer is truncated; halfway if absent. */
const at = Count.optional()
const ErrorNumber = z.coerce.string().regex(/^\d{1,9}$/)

const fault = <const Kind extends string, Shape extends z.ZodRawShape>(kind: Kind, shape: Shape) =>
  z.strictObject({ kind: z.literal(kind), ...match, ...shape })

/** One way of failing; a comment before each kind says what it does. */
export const Fault = z.discriminatedUnion('kind', [
  // Waits before or after executing the command, at most until the faults are cleared, then answers as usual.
  fault('slow', {
    ms: Milliseconds.default(1000),
    when: z.enum(['before', 'after']).default('before'),
  }),
  // Destroys the socket; the command is not executed.
  fault('reset', {}),
  // Executes the command, then destroys the socket.
  fault('lost', {}),
  // Destroys the socket and executes the command later: by `runLate`, `POST /_late`.
  fault('late', {}),
  // Sends the first bytes. `length` announces the full length; `close` announces none, so the end looks clean.
  fault('cut', { execute: executed, at, framing: z.enum(['length', 'close']).default('length') }),
  // Sends the first bytes and keeps the connection open without sending more.
  fault('hang', { execute: executed, at }),
  // The answer without its last tag, with a matching length.
  fault('no_close', { execute: executed }),
  // A 200 without a body.
  fault('empty', { execute: executed }),
  // A 200 that begins like an answer and continues with `mib` MiB of noise.
  fault('junk', { execute: executed, mib: z.int().min(1).max(256).default(1) }),
  // An HTML page, as a proxy in front of the registrar sends.
  fault('html', { execute: notExecuted, status: z.int().min(200).max(599).default(503) }),
  // An HTTP status with a short text.
  fault('status', {
    execute: notExecuted,
    status: z.int().min(200).max(599).default(405),
    message: z.string().default('Too many requests'),
  }),
  // An error in HTTP 200; with `skeleton` it also carries the usual result.
  fault('error', {
    execute: notExecuted,
    number: ErrorNumber.default('500000'),
    message: z.string().default('Too many requests'),
    skeleton: z.boolean().default(false),
  }),
  // Refuses a setHosts that sends a row with this address; the words name its number unless `named` is false.
  fault('refused_row', { address: z.string(), named: z.boolean().default(true) }),
  // The valid answer to another command.
  fault('wrong_command', {
    execute: executed,
    answer: z.string().default('namecheap.domains.getTldList'),
  }),
  // getHosts shows the zone as it was before its last setHosts.
  fault('outdated', {}),
  // getHosts without the attribute EmailType.
  fault('no_email_type', { execute: executed }),
  // Another tool adds rows to the zone directly before or after this call is executed.
  fault('other_tool', {
    when: z.enum(['before', 'after']).default('after'),
    add: z.array(HostSketch).min(1),
  }),
  // Reports success and changes nothing.
  fault('ignored', {}),
  // Status OK, but the result says IsSuccess="false" (or Updated="false").
  fault('is_success_false', { execute: notExecuted }),
  // Status ERROR without errors, around the usual result.
  fault('status_error_without_errors', { execute: executed }),
  // A DOCTYPE that defines an entity, and the usual answer using it.
  fault('doctype', { execute: executed }),
])

export type Fault = z.output<typeof Fault>
export type FaultInput = z.input<typeof Fault>
type Slow = Extract<Fault, { kind: 'slow' }>
export type Breakage = Exclude<Fault, Slow>

export const FaultList = z.strictObject({ faults: z.array(Fault).min(1).max(100) })

/** The faults of a call, of the pending ones: a delay, one other fault, or both; and what is pending then. */
export function takeFaults(pending: Fault[], { command, domain }: { command: string; domain: string | undefined }) {
  const taken: { slow?: Slow; broken?: Breakage } = {}
  const rest = pending.flatMap((fault) => {
    if ((fault.command ?? command) !== command) return [fault]
    if (fault.domain !== undefined && fault.domain !== domain) return [fault]
    if (fault.after > 0) return [{ ...fault, after: fault.after - 1 }]
    if (fault.kind === 'slow' ? taken.slow : taken.broken) return [fault]
    if (fault.kind === 'slow') taken.slow = fault
    else taken.broken = fault
    if (fault.times === 0) return [fault]
    return fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []
  })
  return { ...taken, rest }
}

const mebibyte = 1024 * 1024
const xml = 'text/xml; charset=utf-8'

export function send(reply: ServerResponse, status: number, type: string, body: string): void {
  const bytes = Buffer.from(body)
  reply.writeHead(status, { 'content-type': type, 'content-length': bytes.length })
  reply.end(bytes)
}

/** Sends an XML answer, as a fault demands if there is one. */
export function sendXml(reply: ServerResponse, body: string, fault?: Breakage): void {
  if (!fault) send(reply, 200, xml, body)
  else if (['late', 'lost', 'reset'].includes(fault.kind)) reply.destroy()
  else if (fault.kind === 'cut') cut(reply, Buffer.from(body), fault)
  else if (fault.kind === 'hang') hang(reply, Buffer.from(body), fault.at)
  else if (fault.kind === 'junk') flood(reply, fault.mib)
  else if (fault.kind === 'html') send(reply, fault.status, 'text/html; charset=utf-8', page)
  else if (fault.kind === 'status') send(reply, fault.status, 'text/plain; charset=utf-8', fault.message)
  else send(reply, 200, xml, altered[fault.kind]?.(body) ?? body)
}

const altered: Partial<Record<Breakage['kind'], (body: string) => string>> = {
  empty: () => '',
  no_close: (body) => body.slice(0, body.lastIndexOf('</ApiResponse>')),
  no_email_type: (body) => body.replace(/ EmailType="[^"]*"/, ''),
  is_success_false: (body) => body.replace(/ (IsSuccess|Updated)="true"/, ' $1="false"'),
  status_error_without_errors: (body) => body.replace('<ApiResponse Status="OK"', '<ApiResponse Status="ERROR"'),
  doctype: (body) =>
    body
      .replace('<ApiResponse', '<!DOCTYPE ApiResponse [<!ENTITY who "SANDBOX99">]>\r\n$&')
      .replace('<Server>SANDBOX01<', '<Server>&who;<'),
}

// Bypasses Node's framing, which does not let a body end early.
function cut({ socket }: ServerResponse, body: Buffer, { at, framing }: Extract<Breakage, { kind: 'cut' }>): void {
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
