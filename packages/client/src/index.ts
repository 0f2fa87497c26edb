export { type ChangeStatus, DomainClient, type RecordType } from './domain-client.ts'
export { FileClient, type StoredFile, type UploadOptions } from './file-client.ts'
export { type Problem, ProblemError } from './problem-error.ts'
export type { RetryOptions } from './retrying-fetch.ts'
export type {
  ClientOptions,
  ClientOptions as DomainClientOptions,
  ClientOptions as FileClientOptions,
  Credentials,
} from './session.ts'
export { pages, unwrap } from './unwrap.ts'
