import type { ErrorResponse } from './errors.ts'
import { type Element, element, renderDocument } from './xml.ts'

interface Envelope {
  /** As it is spelled in the list of commands; undefined where none was recognised. */
  command: string | undefined
  /** As the caller spelled it; empty where the caller was not let in. */
  requested: string
  milliseconds: number
}

/** Writes the answer of a command that was carried out. */
export function renderResult(envelope: Envelope, result: Element[]): string {
  return renderEnvelope('OK', [], envelope, result)
}

/** Writes the answer of a command that was refused. */
export function renderRefusal(envelope: Envelope, refusal: ErrorResponse): string {
  const errors = [element('Error', { Number: refusal.number }, refusal.message)]
  const command = refusal.isGlobal ? undefined : envelope.command
  const requested = refusal.isGlobal ? '' : envelope.requested
  return renderEnvelope('ERROR', errors, { ...envelope, command, requested }, refusal.skeleton)
}

function renderEnvelope(
  status: string,
  errors: Element[],
  { command, requested, milliseconds }: Envelope,
  result: Element[],
): string {
  const response = command ? [element('CommandResponse', { Type: command }, result)] : []
  const attributes = { Status: status, xmlns: 'http://api.namecheap.com/xml.response' }
  const parts = [
    element('Errors', {}, errors),
    element('Warnings'),
    element('RequestedCommand', {}, requested.toLowerCase()),
    ...response,
    element('Server', {}, 'SANDBOX01'),
    // The registrar writes the sign twice.
    element('GMTTimeDifference', {}, '--5:00'),
    element('ExecutionTime', {}, String(Number((milliseconds / 1000).toFixed(3)))),
  ]
  return renderDocument(element('ApiResponse', attributes, parts))
}
