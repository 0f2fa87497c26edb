import { randomBytes } from 'node:crypto'
import type { S3BlobStore } from '../../../src/blobs/s3/s3-blob-store.ts'
import type { S3Contents } from './s3-contents.ts'
import type { S3Call } from './s3-server.ts'

/** A content that is one object. */
export const large = randomBytes(100_000)

/** A content that is sent in parts. */
export const huge = randomBytes(20_000_000)

/** Whether the service only probes the store, which it does every two seconds. */
export const isProbe = ({ key }: S3Call) => key === 'files/probe'

/** The keys of all objects in the bucket, sorted. */
export const objectKeys = ({ s3 }: S3Contents) =>
  [...s3.store.objects.keys()].filter((key) => key !== 'files/probe').sort()

/** An upload that has arrived and is not committed; it ends when it is disposed of. */
export async function keep({ store }: { store: S3BlobStore }, content: Buffer) {
  const draft = store.draft()
  await draft.write(Buffer.from(content))
  await draft.seal()
  const { digest } = await draft.keep()
  return { digest, [Symbol.asyncDispose]: () => draft[Symbol.asyncDispose]() }
}
