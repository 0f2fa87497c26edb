export * from './list-query.ts'
export * from './parameters.ts'
export * as responses from './responses.ts'
