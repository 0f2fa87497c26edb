export * as errors from './answer.ts'
export { type Element, type Envelope, element, renderAnswer } from './answer.ts'
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
