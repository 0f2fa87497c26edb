import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { Settings as ConsoleSettings } from '../../packages/console/src/config.ts'
import { Settings as DomainSettings } from '../../packages/domain-service/src/config.ts'
import { Settings as StaticSettings } from '../../packages/static-service/src/config.ts'
import { root } from '../support/everything.ts'
import { tableRows } from '../support/tables.ts'

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const examples = [...read('.env.example').matchAll(/^([A-Z\d_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [
  name,
  value,
])
const documented = tableRows(read('docs/configuration.md')).map(([name = '', value = '']) => [
  name.replaceAll('`', ''),
  value.replaceAll('`', ''),
])
const shapes = { ...ConsoleSettings.shape, ...StaticSettings.shape, ...DomainSettings.shape }

test('docs/configuration.md and .env.example list the same settings with the same defaults', () => {
  expect(documented).toEqual(examples)
})

test('every setting of the services is documented, and no other', () => {
  expect(examples.map(([name]) => name).sort()).toEqual(Object.keys(shapes).sort())
})

test('every documented default is the default of the code', () => {
  const wrong = examples.filter(([name = '', value]) => {
    const schema = Object.entries(shapes).find(([known]) => known === name)?.[1]
    const [fallback, example] = [schema?.safeParse(undefined), schema?.safeParse(value || undefined)]
    return JSON.stringify(fallback) !== JSON.stringify(example)
  })

  expect(wrong).toEqual([])
})

test('every setting with a number takes decimal digits only, and says what it must be', () => {
  const numbers = examples.filter(([, value]) => /^\d+$/.test(value ?? ''))

  const answers = numbers.map(([name]) => Reflect.get(shapes, name ?? '').safeParse('0x7d0').error)

  expect(numbers.length).toBeGreaterThan(20)
  for (const error of answers) expect(error?.issues[0].message).toMatch(/^must be a whole number/)
})

test('.env.example contains no secret', () => {
  const secrets = examples.filter(([name = '']) => /SECRET|PASSWORD$|KEY|TOKEN$/.test(name))

  expect(secrets.length).toBeGreaterThan(3)
  expect(secrets.filter(([, value]) => value !== '')).toEqual([])
})

test('docker-compose.yml publishes every port on 127.0.0.1 unless told otherwise', () => {
  const { services }: { services: Record<string, { ports?: string[] }> } = parse(read('docker-compose.yml'), {
    merge: true,
  })
  const ports = Object.values(services).flatMap((service) => service.ports ?? [])

  expect(ports).toHaveLength(3)
  expect(ports.filter((port) => !/^\$\{[A-Z_]+:-127\.0\.0\.1:\d+\}:\d+$/.test(port))).toEqual([])
})
