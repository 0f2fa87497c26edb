import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { z } from 'zod'

/** The parts of JSON Schema that the generator uses. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  examples?: unknown[]
}

const AnySchema = z.custom<Schema>((value) => typeof value === 'object' && value !== null)
const Content = z.record(z.string(), z.object({ schema: AnySchema }))
const Answers = z.record(z.string(), z.object({ content: Content.optional() }))
const Operation = z.object({
  operationId: z.string(),
  parameters: z
    .array(z.object({ name: z.string(), in: z.enum(['path', 'query', 'header']), schema: AnySchema }))
    .default([]),
  requestBody: z.object({ content: Content }).optional(),
  responses: Answers,
})
const Description = z.object({ paths: z.record(z.string(), z.record(z.string(), Operation)) })

export type Operation = z.infer<typeof Operation> & { method: string; path: string }

/** A received response; header names in lower case. */
export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** The OpenAPI document of a service; validates responses against it. */
export async function readDescription(port: number) {
  const answer = await fetch(`http://127.0.0.1:${port}/openapi.json`)
  const document = z.looseObject({}).parse(await answer.json())
  const { paths } = Description.parse(document)
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema(document, 'openapi')
  const operations: Operation[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method })),
  )

  // By schema: hundreds of responses have the same one, and compiling takes longer than a request.
  const validators = new Map<string, ValidateFunction>()
  const validatorAt = (place: string, schema: Schema) => {
    const key = JSON.stringify(schema)
    const known = validators.get(key) ?? ajv.compile({ $ref: place })
    validators.set(key, known)
    return known
  }

  /** How a response deviates from its operation; undefined if it conforms. */
  const validate = (operation: Operation, answer: Answer): string[] => {
    const { path, method, responses } = operation
    const key = responses[answer.status] ? String(answer.status) : 'default'
    const declared = responses[key]
    if (!declared || (key === 'default' && answer.status < 400)) {
      return [`the status ${answer.status} is not declared`]
    }
    if (!declared.content) return answer.text === '' ? [] : ['a body is not declared']
    const [type = ''] = String(answer.headers['content-type']).split(';')
    const { content } = declared
    const name = [type, '*/*'].find((each) => content[each])
    const schema = name && content[name]?.schema
    if (!schema) return [`the content type ${type} is not declared`]
    if (!type.endsWith('json') || name === '*/*') return []
    const place = ['paths', path, method, 'responses', key, 'content', name, 'schema']
    const isValid = validatorAt(`openapi#/${place.map(escapeName).join('/')}`, schema)
    return isValid(JSON.parse(answer.text)) ? [] : [ajv.errorsText(isValid.errors)]
  }
  return { operations, validate, document }
}

// A JSON Pointer in a URI fragment.
const escapeName = (name: string) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
