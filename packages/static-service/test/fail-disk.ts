import { appendFileSync, readFileSync } from 'node:fs'
import { interceptDisk } from './disk.ts'

// A preload for the service: the file FAILURE_PLAN says how a call of the disk fails and which one, counted from when
// the plan was written, of all or of those about a path with some text. What has failed is told in a file beside it.

const file = process.env.FAILURE_PLAN ?? ''
let plan = ''
let count = 0

interceptDisk((operation, run) => {
  const text = readPlan()
  if (text !== plan) count = 0
  plan = text
  const [code = '', nth = '', about = ''] = text.split(' ')
  if (`${operation.path} ${operation.to}`.includes(about)) count += 1
  else return run()
  if (Number(nth) !== count) return run()
  appendFileSync(`${file}.done`, `${operation.name}\n`)
  const { name: syscall, path } = operation
  const message = `${code}: as was ordered, ${syscall} '${path}'`
  return Promise.reject(Object.assign(new Error(message), { code, syscall, path }))
})

function readPlan(): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
