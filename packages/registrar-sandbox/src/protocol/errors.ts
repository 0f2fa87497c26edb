import type { Element } from './xml.ts'

interface Details {
  /** Refused before the command was read: it is not echoed, and there is no CommandResponse. */
  isGlobal?: boolean
  /** Content of CommandResponse, which some refusals have. */
  skeleton?: Element[]
}

/** A refusal of the registrar. Clients rely on the number; the words may change. */
export class ErrorResponse extends Error {
  readonly number: string
  readonly isGlobal: boolean
  readonly skeleton: Element[]

  constructor(number: string, message: string, { isGlobal = false, skeleton = [] }: Details = {}) {
    super(message)
    this.number = number
    this.isGlobal = isGlobal
    this.skeleton = skeleton
  }
}

/** A refusal of the caller, whatever the command. */
export const accessRefused = (number: string, message: string) =>
  new ErrorResponse(number, message, { isGlobal: true })

export const keyRefused = () =>
  accessRefused('1011102', 'The API key is not valid, or API access is not enabled')
export const commandMissing = () => accessRefused('1010104', 'Parameter Command is missing')

export const domainMissing = (parameter: string) =>
  new ErrorResponse('2010166', `Parameter ${parameter} is missing`)
export const domainNotFound = (skeleton: Element[] = []) =>
  new ErrorResponse('2019166', 'Domain name not found', { skeleton })
export const domainNotEditable = () =>
  new ErrorResponse('2030166', 'Edit permission for this domain is not given')

export const parameterMissing = (parameter: string) =>
  new ErrorResponse('2010288', `Parameter ${parameter} is missing`)
export const parameterInvalid = (parameter: string, reason: string) =>
  new ErrorResponse('2011288', `Parameter ${parameter} is invalid: ${reason}`)
