import {
  booleanSetting,
  type Environment,
  followSecret,
  integerSetting,
  named,
  urlSetting,
} from '@domains-and-files/http'
import { z } from 'zod'

/** The settings of contents in S3, as zod shapes to spread into the schema of the service. */
export const s3Settings = {
  S3_BUCKET: z
    .string()
    .regex(/^[\w.-]{1,255}$/, 'must be the name of a bucket')
    .optional(),
  S3_ENDPOINT: urlSetting.optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_PREFIX: z
    .string()
    .regex(/^[\w.-]+(?:\/[\w.-]+)*$/, 'must be a path such as files or team/files')
    .default(''),
  S3_FORCE_PATH_STYLE: booleanSetting.optional(),
  S3_TIMEOUT_MS: integerSetting(100, 600_000).default(10_000),
  GARBAGE_GRACE_S: integerSetting(0, 31_536_000).default(86_400),
  AWS_ACCESS_KEY_ID: z.string().optional(),
  AWS_SECRET_ACCESS_KEY: z.string().optional(),
  AWS_SESSION_TOKEN: z.string().optional(),
}

type S3Settings = z.output<z.ZodObject<typeof s3Settings>>

/** The part of the service's config that `s3Settings` gives; undefined without S3_BUCKET. */
export function s3Config(settings: S3Settings, env: Environment) {
  const { bucket, ...options } = named(settings, 'S3_')
  if (bucket === undefined) return undefined
  return {
    bucket,
    ...options,
    // Of stores other than AWS, few have a host name for each bucket.
    forcePathStyle: options.forcePathStyle ?? options.endpoint !== undefined,
    graceSeconds: settings.GARBAGE_GRACE_S,
    credentials: credentialsOf(settings, env),
  }
}

export type S3Config = NonNullable<ReturnType<typeof s3Config>>

export function requireBothStores(
  settings: S3Settings & { DATABASE_URL?: string | undefined; STATIC_OFFLOAD: string },
) {
  const { DATABASE_URL, S3_BUCKET, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = settings
  const isOffloading = S3_BUCKET && settings.STATIC_OFFLOAD !== 'off'
  return {
    S3_BUCKET: DATABASE_URL && !S3_BUCKET && 'is required with DATABASE_URL',
    DATABASE_URL: S3_BUCKET && !DATABASE_URL && 'is required with S3_BUCKET',
    STATIC_OFFLOAD: isOffloading && 'must be off with S3_BUCKET: there are no files to send',
    AWS_SECRET_ACCESS_KEY: AWS_ACCESS_KEY_ID && !AWS_SECRET_ACCESS_KEY && 'is required with AWS_ACCESS_KEY_ID',
  }
}

/** Undefined: the standard chain of the AWS SDK finds them, such as a role of the machine. */
function credentialsOf(settings: S3Settings, env: Environment) {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN = '' } = settings
  if (!id || !secret) return undefined
  const readId = followSecret('AWS_ACCESS_KEY_ID', env, id)
  const readSecret = followSecret('AWS_SECRET_ACCESS_KEY', env, secret)
  const readSession = followSecret('AWS_SESSION_TOKEN', env, AWS_SESSION_TOKEN)
  return async () => {
    const sessionToken = readSession()
    return {
      accessKeyId: readId(),
      secretAccessKey: readSecret(),
      ...(sessionToken && { sessionToken }),
      expiration: new Date(), // The SDK asks again for the next request.
    }
  }
}
