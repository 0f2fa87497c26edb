export { type Envelope, renderRefusal, renderResult } from './envelope.ts'
export * as errors from './errors.ts'
export {
  type ListQuery,
  listTypes,
  Params,
  readListQuery,
  readSubmitted,
  type Submitted,
  sortKeys,
} from './parameters.ts'
export * as results from './results.ts'
export { type Element, element } from './xml.ts'
