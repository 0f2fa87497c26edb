import { join } from 'node:path'
import { ask } from '../harness/answer.ts'
import { compare, type Finding } from '../harness/finding.ts'
import { alter, curl, digestOf, makeLargeFile, megabytes, uploadAndDelete } from '../harness/large-file.ts'
import { alternate } from '../harness/rounds.ts'
import { type Service, startStatic } from '../harness/services.ts'
import { s3Authorization, startStores } from '../harness/stores.ts'
import { load } from '../harness/wrk.ts'

/** Files of 4 KiB over 16 connections, each a row of PostgreSQL, beside the embedded service. */
export async function uploadSmallShared(folder: string): Promise<Finding[]> {
  await using servers = new AsyncDisposableStack()
  const stores = servers.use(await startStores(folder))
  const shared = servers.use(await startStatic(join(folder, 'shared'), stores.env))
  const embedded = servers.use(await startStatic(join(folder, 'embedded')))
  let turn = 0
  const store = ({ url, token }: Service) => {
    turn += 1
    const target = { METHOD: 'POST', TO: '/api/files/upload', TOKEN: token }
    const env = { SIZE: '4096', FROM: String(turn), ...target }
    return load({ url, connections: 16, script: 'upload.lua', env })
  }
  await store(shared)
  const { body } = await ask(`${shared.url}/static/1-100.bin`)
  if (body.length !== 4096) throw new Error('the bytes sent are not there')
  const figures = await alternate({ ours: () => store(shared), embedded: () => store(embedded) })
  return compare({ work: 'uploads of 4 KiB to PostgreSQL, 16 at once', unit: 'files/s' }, figures, {})
}

/** One file of 1 GiB, in S3 before the response, beside the same bytes sent to the store itself. */
export async function uploadLargeShared(folder: string): Promise<Finding[]> {
  await using servers = new AsyncDisposableStack()
  const stores = servers.use(await startStores(folder))
  const ours = servers.use(await startStatic(join(folder, 'shared'), stores.env))
  const file = await makeLargeFile(folder)
  const object = `${stores.s3.url}/contents/direct`
  const headers = ['-H', `authorization: ${s3Authorization}`]
  const figures = await alternate(
    {
      ours: async () => {
        await alter(file)
        return megabytes / (await uploadAndDelete(ours, file))
      },
      'one PUT to the store': async () => {
        await alter(file)
        const digest = ['-H', `x-amz-content-sha256: ${await digestOf(file)}`]
        const seconds = await curl(object, [...headers, ...digest, '-T', file])
        await curl(object, [...headers, '-X', 'DELETE'])
        return megabytes / seconds
      },
    },
    2,
  )
  return compare({ work: 'upload of 1 GiB to S3', unit: 'MB/s' }, figures, {})
}
