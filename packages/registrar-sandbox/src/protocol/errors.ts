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

const refuseAccess = (number: string, message: string) =>
  new ErrorResponse(number, message, { isGlobal: true })

export const apiUserMissing = () => refuseAccess('1010101', 'Parameter ApiUser is missing')
export const keyRefused = () =>
  refuseAccess('1011102', 'The API key is not valid, or API access is not enabled')
export const userNameMissing = () => refuseAccess('1010103', 'Parameter UserName is missing')
export const userNameUnknown = () => refuseAccess('1019103', 'The UserName is not available')
export const commandMissing = () => refuseAccess('1010104', 'Parameter Command is missing')
export const clientIpMissing = () => refuseAccess('1010105', 'Parameter ClientIp is missing')
export const clientIpInvalid = () => refuseAccess('1011105', 'Parameter ClientIp is not an IPv4')
export const clientIpRefused = (ip: string) =>
  refuseAccess('1011150', `Invalid request IP: ${ip.slice(0, 45)}`)

export const commandUnknown = () => new ErrorResponse('1011104', 'Parameter Command is invalid')
export const tooManyRequests = () => new ErrorResponse('500000', 'Too many requests')

export const domainMissing = (parameter: string) =>
  new ErrorResponse('2010166', `Parameter ${parameter} is missing`)
export const domainNotFound = (skeleton: Element[] = []) =>
  new ErrorResponse('2019166', 'Domain name not found', { skeleton })
export const domainInvalid = (skeleton: Element[]) =>
  new ErrorResponse('2030166', 'Domain is invalid', { skeleton })
export const domainNotEditable = () =>
  new ErrorResponse('2030166', 'Edit permission for this domain is not given')
export const dnsElsewhere = () =>
  new ErrorResponse(
    '2030288',
    'This domain does not use our DNS servers, so the command is not possible',
  )
export const tooManyRecords = (max: number) =>
  new ErrorResponse('3013288', `Too many records: a domain may have ${max}`)

export const listTypeInvalid = () => new ErrorResponse('2011169', 'Parameter ListType is invalid')
export const searchTermInvalid = () =>
  new ErrorResponse('2011170', 'Parameter SearchTerm is too long')
export const pageInvalid = () => new ErrorResponse('2011171', 'Parameter Page is invalid')
export const pageSizeInvalid = (skeleton: Element[]) =>
  new ErrorResponse('2013275', 'Parameter PageSize is OutOfRange', { skeleton })
export const sortByInvalid = () => new ErrorResponse('2011173', 'Parameter SortBy is invalid')

export const parameterMissing = (parameter: string) =>
  new ErrorResponse('2010288', `Parameter ${parameter} is missing`)
export const parameterInvalid = (parameter: string, reason: string) =>
  new ErrorResponse('2011288', `Parameter ${parameter} is invalid: ${reason}`)
