import { appendFileSync, readFileSync } from 'node:fs'
import { type Operation, watchDisk } from './disk.ts'

// A preload for the service: the file FAILURE_PLAN says with which error code a call of `node:fs/promises` fails and
// which one, counted from when the plan was written (`3+`: and all that follow), of all or of those about a path with some text. The name of the call
// that failed is appended to a file beside it.

const file = process.env.FAILURE_PLAN ?? ''
let plan = ''
let count = 0

watchDisk({ begin: failWhereOrdered })

function failWhereOrdered({ name, path, to }: Operation) {
  const text = readPlan()
  if (text !== plan) count = 0
  plan = text
  const [code = '', nth = '', about = ''] = text.split(' ')
  if (!`${path} ${to}`.includes(about)) return
  count += 1
  const first = Number.parseInt(nth, 10)
  if (nth.endsWith('+') ? count < first : count !== first) return
  appendFileSync(`${file}.done`, `${name}\n`)
  const message = `${code}: as was ordered, ${name} '${path}'`
  throw Object.assign(new Error(message), { code, syscall: name, path })
}

function readPlan(): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
