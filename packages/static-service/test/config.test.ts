import { expect, test } from 'vitest'
import { readConfig } from '../src/config.ts'

const base = { JWT_SECRET: 'a secret of these tests that is long enough', DATA_DIR: 'data' }
const database = { DATABASE_URL: 'postgres://localhost/files' }
const bucket = { S3_BUCKET: 'files' }

test.each([
  ['a database without a bucket', database, 'S3_BUCKET: is required with DATABASE_URL'],
  ['a bucket without a database', bucket, 'DATABASE_URL: is required with S3_BUCKET'],
  [
    'a proxy that sends files',
    { ...database, ...bucket, STATIC_OFFLOAD: 'nginx', TRUST_PROXY: '127.0.0.1' },
    'STATIC_OFFLOAD: must be off with S3_BUCKET',
  ],
  [
    'a secret of its own for each replica',
    { ...database, ...bucket, JWT_SECRET: '' },
    'JWT_SECRET: is required with DATABASE_URL',
  ],
  [
    'half of the credentials',
    { ...database, ...bucket, AWS_ACCESS_KEY_ID: 'key' },
    'AWS_SECRET_ACCESS_KEY: is required with AWS_ACCESS_KEY_ID',
  ],
])('the start is refused with %s', (_name, env, message) => {
  expect(() => readConfig({ ...base, ...env })).toThrow(message)
})

test('requests name the bucket in the path by default where the store is not AWS', () => {
  const endpoint = { S3_ENDPOINT: 'http://localhost:9000' }

  expect(readConfig({ ...base, ...database, ...bucket }).s3?.forcePathStyle).toBe(false)
  expect(readConfig({ ...base, ...database, ...bucket, ...endpoint }).s3?.forcePathStyle).toBe(true)
  const virtual = { ...endpoint, S3_FORCE_PATH_STYLE: 'false' }
  expect(readConfig({ ...base, ...database, ...bucket, ...virtual }).s3?.forcePathStyle).toBe(false)
})
