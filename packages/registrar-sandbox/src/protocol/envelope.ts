import type { ErrorResponse } from './errors.ts'
import { type Element, element, renderDocument } from './xml.ts'

/** The parts of a response around its result. */
export interface Envelope {
  /** As the registrar spells it; undefined if unknown. */
  command: string | undefined
  /** As the caller spelled it; empty without authentication. */
  requested: string
  milliseconds: number
  /** Name of the server that answers. */
  server: string
}

/** The answer of an executed command. */
export function renderResult(envelope: Envelope, result: Element[]): string {
  return renderEnvelope('OK', [], envelope, result)
}

/** The answer of a refused command. */
export function renderRefusal(envelope: Envelope, refusal: ErrorResponse): string {
  const refusals = [element('Error', { Number: refusal.number }, refusal.message)]
  const command = refusal.isGlobal ? undefined : envelope.command
  const requested = refusal.isGlobal ? '' : envelope.requested
  return renderEnvelope('ERROR', refusals, { ...envelope, command, requested }, refusal.skeleton)
}

function renderEnvelope(
  status: string,
  refusals: Element[],
  { command, requested, milliseconds, server }: Envelope,
  result: Element[],
): string {
  const response = command ? [element('CommandResponse', { Type: command }, result)] : []
  const attributes = { Status: status, xmlns: 'http://api.namecheap.com/xml.response' }
  const parts = [
    element('Errors', {}, refusals),
    element('Warnings'),
    element('RequestedCommand', {}, requested.toLowerCase()),
    ...response,
    element('Server', {}, server),
    // Not a typo: the registrar writes the sign twice.
    element('GMTTimeDifference', {}, '--5:00'),
    element('ExecutionTime', {}, String(Number((milliseconds / 1000).toFixed(3)))),
  ]
  return renderDocument(element('ApiResponse', attributes, parts))
}
