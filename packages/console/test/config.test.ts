import { expect, test } from 'vitest'
import { readConfig } from '../src/config.ts'

test('the console listens on 3000 and offers no service by default', () => {
  const config = readConfig({})

  expect(config).toMatchObject({ host: '127.0.0.1', port: 3000 })
  expect(config.domainServiceUrl).toBeUndefined()
  expect(config.staticServiceUrl).toBeUndefined()
})

test.each([
  'ftp://files.example',
  'files.example',
  'https://user:secret@files.example',
  'https://files.example/?a=b',
  'https://files.example; script-src *',
])('the service URL %j is refused', (url) => {
  expect(() => readConfig({ STATIC_SERVICE_URL: url })).toThrow(/STATIC_SERVICE_URL/)
})
