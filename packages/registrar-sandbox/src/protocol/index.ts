export { type Envelope, renderRefusal, renderResult } from './envelope.ts'
export * as errors from './errors.ts'
export {
  isOfType,
  type ListQuery,
  listTypes,
  readListQuery,
  sortDomains,
  sortKeys,
} from './list-query.ts'
export { Params, readSubmitted, type Submitted } from './parameters.ts'
export * as results from './results.ts'
export { type Element, element } from './xml.ts'
