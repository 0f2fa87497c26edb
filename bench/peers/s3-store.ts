// The S3 store of the static service's tests as a process.
import { once } from 'node:events'
import { startOwn } from '../../packages/static-service/test/support/s3/s3-server.ts'

const store = await startOwn(Number(process.env.PORT))
await once(process, 'SIGTERM')
await store[Symbol.asyncDispose]()
process.exit()
