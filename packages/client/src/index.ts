export { type ChangeStatus, DomainClient, type RecordType } from './domain-client.ts'
export { FileClient, type StoredFile, type UploadOptions } from './file-client.ts'
export { type Problem, ProblemError, pages, unwrap } from './responses.ts'
export type { ClientOptions, Credentials } from './session.ts'
