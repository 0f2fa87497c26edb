import { randomUUID } from 'node:crypto'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'

// Settings of a real S3 store, as JSON, for tests that inject no faults.
const given = process.env.TEST_S3_STORE

/** Settings of a service for a prefix of its own in the real store; undefined if there is none. Creates the bucket. */
export async function openRealStore(): Promise<Record<string, string> | undefined> {
  if (!given) return undefined
  const env: Record<string, string> = JSON.parse(given)
  const client = new S3Client({
    endpoint: env.S3_ENDPOINT ?? '',
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: {
      accessKeyId: env.AWS_ACCESS_KEY_ID ?? '',
      secretAccessKey: env.AWS_SECRET_ACCESS_KEY ?? '',
    },
  })
  await client.send(new CreateBucketCommand({ Bucket: env.S3_BUCKET })).catch((error: Error) => {
    if (!/^BucketAlready/.test(error.name)) throw error
  })
  client.destroy()
  return { ...env, S3_PREFIX: `files-${randomUUID()}` }
}
