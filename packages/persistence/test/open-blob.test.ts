import { expect, test } from 'vitest'
import { findFault, openBytes } from '../src/index.ts'

test('of a blob of another size no byte is read', async () => {
  const read = () => Promise.reject(new Error('was read'))
  const blob = { ...openBytes(Buffer.alloc(3)), read }

  expect(await findFault(blob, { digest: 'any', size: 4 })).toBe('has 3 bytes instead of 4')
})
