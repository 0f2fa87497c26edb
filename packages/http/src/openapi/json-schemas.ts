import { z } from 'zod'

/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 embeds it. */
export interface JsonSchema extends z.core.JSONSchema.JSONSchema {
  properties?: Record<string, JsonSchema>
  items?: JsonSchema
  anyOf?: JsonSchema[]
}

/** Converted zod schemas. Those with an `id`, and the named ones that they refer to, are components. */
export interface JsonSchemas {
  components: Record<string, JsonSchema>
  of(schema: z.ZodType): JsonSchema
}

/**
 * Converts zod schemas for requests (`input`) or responses (`output`). A component's name is its `id`, with the suffix
 * `Input` for requests: defaults and transforms make the two sides of a schema differ.
 */
export function toJsonSchemas(io: 'input' | 'output', schemas: Iterable<z.ZodType>): JsonSchemas {
  const keys = new Map([...new Set(schemas)].map((schema, index) => [schema, `schema${index}`]))
  // A single conversion, so that zod collects each named schema once.
  const all = z.object(Object.fromEntries([...keys].map(([schema, key]) => [key, schema])))
  const converted = z.toJSONSchema(all, { io, unrepresentable: 'any', override: complete })
  const suffix = io === 'input' ? 'Input' : ''
  const { properties, $defs }: { properties: Record<string, JsonSchema>; $defs?: object } = JSON.parse(
    JSON.stringify(converted).replace(/"#\/\$defs\/(\w+)"/g, (_all, id) => `"#/components/schemas/${id}${suffix}"`),
  )
  const named = Object.entries($defs ?? {}).map(([id, schema]) => [`${id}${suffix}`, schema])
  return {
    components: Object.fromEntries(named),
    of: (schema) => properties[keys.get(schema) ?? ''] ?? {},
  }
}

type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>['override']>

// Adds defaults and examples, which zod omits for schemas with a transform. Removes patterns made redundant by a format
// or integer, since client generators must translate them; and the safe-integer bounds, which limit nothing in practice.
const complete: Override = ({ zodSchema, jsonSchema }) => {
  const { def } = zodSchema._zod
  if (def.type === 'default') jsonSchema.default ??= def.defaultValue
  const meta = z.globalRegistry.get(zodSchema)
  if (Array.isArray(meta?.examples)) jsonSchema.examples ??= meta.examples
  if (jsonSchema.type === 'integer' || jsonSchema.format) delete jsonSchema.pattern
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

/** The example of a schema, else one of its required parts. A component is inside itself once. */
export function exampleOf(
  schema: JsonSchema,
  components: Record<string, JsonSchema>,
  around: JsonSchema[] = [],
): unknown {
  const { examples, properties = {}, required = [], items = {}, format = '' } = schema
  const [type = ''] = [schema.type ?? []].flat()
  const inside = [...around, schema]
  const partOf = (part: JsonSchema = {}) => exampleOf(part, components, inside)
  const [known = schema.const ?? schema.enum?.[0]] = examples ?? []
  if (known !== undefined || around.indexOf(schema) !== around.lastIndexOf(schema)) return known
  if (schema.$ref) return partOf(components[schema.$ref.split('/').at(-1) ?? ''])
  if (schema.anyOf) return schema.anyOf.map(partOf).find((each) => each !== undefined)
  if (type === 'object') return Object.fromEntries(required.map((name) => [name, partOf(properties[name])]))
  if (type === 'array') return [partOf(items)].filter((item) => item !== undefined)
  return samples[format] ?? samples[type]
}

const samples: Record<string, unknown> = {
  string: 'text',
  'date-time': '2027-01-15T09:30:00.000Z',
  integer: 1,
  boolean: true,
}
