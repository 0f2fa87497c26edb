import type { FastifyContextConfig, FastifyInstance, FastifySchema, FastifyTypeProvider } from 'fastify'
import { z } from 'zod'
import type { Fault } from './http-error.ts'

/** The callers of a route: all (`public`), or those with at least this role. */
export type Access = 'public' | 'viewer' | 'editor' | 'admin'

export interface HeaderDoc {
  description: string
  example: string
}

/** A response of a route. `content` is its media type where that is not JSON, or not JSON alone. */
export interface ResponseDoc {
  description: string
  headers?: Record<string, HeaderDoc>
  /** The schema of the body; absent: it has none, or only one of `content`. */
  body?: z.ZodType
  content?: string
  /** A body of that media type; without it the body is binary. */
  example?: string
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route without it stops the boot. */
    access?: Access | undefined
    /**
     * The handler checks the record limits of API tokens. Other routes reject tokens with record limits, except for
     * reads by a token that also has a role.
     */
    enforcesRecordLimits?: boolean | undefined
    /** Callers with an API token are refused. */
    needsLogin?: boolean | undefined
    /** Callers with limits are refused, such as admins of some domains. */
    needsNoLimits?: boolean | undefined
    /**
     * Finds further faults of a request that the schemas reject, so that one 400 names every fault. Its argument has the
     * accepted values; rejected ones are undefined.
     */
    moreFaults?: (request: { params: unknown; body: unknown }) => Fault[]
    /**
     * How a route enforces the folder limits of callers. `path`: the wildcard of its URL is the path of a file.
     * `prefix`: it covers the directory of the query parameter `prefix`, which defaults to the caller's only folder.
     * `handler`: it calls `requirePath` and `requireDirectory`. `none`: it neither shows nor changes files.
     */
    folders?: 'path' | 'prefix' | 'handler' | 'none' | undefined
    /** The path whose routes serve the other methods of this one; without it they are 405. */
    otherMethods?: string | undefined
    /** The route is served at its path with a trailing slash, too. */
    optionalSlash?: true | undefined
  }
  // Documentation of a route beside its schemas; texts are Markdown.
  interface FastifySchema {
    /** Not in the OpenAPI document. */
    hide?: boolean
    operationId?: string
    summary?: string
    description?: string
    tags?: readonly string[]
    /** Media types of the body. Default: `application/json`. */
    consumes?: readonly string[]
    /** Security requirements. Default: by the route's access. */
    security?: readonly Record<string, readonly string[]>[]
    /** Request headers that the route reads, by name. */
    requestHeaders?: Record<string, HeaderDoc>
    /** By status. */
    responses?: Record<number, ResponseDoc>
    /** An example of each error that the route can return. */
    errors?: readonly Error[]
  }
  interface FastifyReply {
    /** The code of the problem that this reply carries, for metrics. */
    problemCode?: string
  }
}

/** Types requests and replies by the zod schemas of their route. */
export interface ZodTypeProvider extends FastifyTypeProvider {
  validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown
  serializer: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown
}

const rights = [
  ...(['access', 'needsLogin', 'needsNoLimits', 'enforcesRecordLimits'] as const),
  ...(['folders', 'otherMethods', 'optionalSlash'] as const),
] as const

type Operation = FastifySchema & Pick<FastifyContextConfig, (typeof rights)[number]>

/**
 * The options of the routes of a resource by operation id, each from one description: its rights, and the schema that
 * validates and documents it. What a description does not say itself is in `shared`.
 */
export function operations<const All extends Record<string, Operation> & { shared: Operation }>(all: All) {
  const { shared, ...each } = all
  const options = Object.entries(each).map(([operationId, own]) => {
    const schema: Operation = { operationId, ...shared, ...own }
    if (schema.responses) schema.response = bodiesOf(schema.responses)
    const config = Object.fromEntries(rights.map((name) => [name, schema[name]]))
    for (const name of rights) delete schema[name]
    return [operationId, { config, schema }]
  })
  return Object.fromEntries(options) as {
    [Id in Exclude<keyof All, 'shared'>]: {
      config: FastifyContextConfig
      schema: WithBodies<Omit<All['shared'], keyof All[Id]> & All[Id]>
    }
  }
}

type WithBodies<Schema> = Schema extends { responses: infer Docs } ? Schema & { response: Bodies<Docs> } : Schema
type Bodies<Docs> = { [Status in keyof Docs]: Docs[Status] extends { body: infer Body } ? Body : z.ZodUndefined }

const bodiesOf = (responses: Record<number, ResponseDoc>) =>
  Object.fromEntries(Object.entries(responses).map(([status, { body = z.undefined() }]) => [status, body]))

/** Serves `optionalSlash`. Call it before other hooks change the options of routes. */
export function serveOptionalSlashes(app: FastifyInstance): void {
  app.addHook('onRoute', function addSlash(route) {
    const { url, method, config } = route
    if (!config?.optionalSlash || method === 'HEAD') return
    this.route({ ...route, url: `${url}/`, config: { ...config, optionalSlash: undefined } })
  })
}

/** The success response of a route, for its description; without a body by default. */
export const answers = <const Status extends number, Body extends z.ZodType = z.ZodUndefined>(
  status: Status,
  description: string,
  body?: Body,
  headers: Record<string, HeaderDoc> = {},
) => ({
  responses: { [status]: { description, headers, body } } as Record<Status, ResponseDoc & { body: Body }>,
})
