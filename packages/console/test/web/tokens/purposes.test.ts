import { expect, test } from 'vitest'
import { purposes, toTokenInput } from '../../../web/tokens/purposes.js'
import { splitFolders, splitList } from '../../../web/ui/format.js'

const answers = { domain: 'example.com', names: 'home, vpn' }
const inputFor = (key: string) => {
  const purpose = purposes[key]
  if (!purpose) throw new Error(`no purpose ${key}`)
  return toTokenInput(purpose, { name: 'mine', days: '1', ...answers })
}

test('a router may change the address records of its names only', () => {
  expect(inputFor('router')).toEqual({
    name: 'mine',
    expires_in: 86_400,
    domains: ['example.com'],
    records: [
      { name: 'home', types: ['A', 'AAAA'] },
      { name: 'vpn', types: ['A', 'AAAA'] },
    ],
  })
})

test('a certificate client may change challenge records only', () => {
  expect(inputFor('certificates').records).toEqual([
    { name: '_acme-challenge', types: ['TXT'] },
    { name: '_acme-challenge.*', types: ['TXT'] },
  ])
})

test.each(['readDomains', 'readFiles'])('%s makes a viewer', (key) => {
  expect(inputFor(key)).toEqual({ name: 'mine', expires_in: 86_400, role: 'viewer' })
})

test('the settings of a router name its hosts, the service and the token', () => {
  const settings = purposes.router?.settings({
    token: 'ds_x',
    url: 'https://dns.example.com',
    answers,
  })

  expect(settings).toContainEqual(['Server', 'dns.example.com'])
  expect(settings).toContainEqual(['Host name', 'home.example.com,vpn.example.com'])
  expect(settings).toContainEqual(['Password', 'ds_x'])
})

test('names may be separated by commas and blanks', () => {
  expect(splitList(' a, b  c,')).toEqual(['a', 'b', 'c'])
})

test('folders are separated by commas, since their names may have blanks', () => {
  expect(splitFolders('our documents/ , site/,')).toEqual(['our documents/', 'site/'])
})
