import type { Middleware } from 'openapi-fetch'

export type Watch = Middleware

/** One answer, by the operation that it belongs to. */
export interface Answered {
  method: string
  path: string
  status: number
  type: string | null
  text: string
}

/** Keeps each answer that a client gets. */
export function watchAnswers(): { watch: Watch; answers: Answered[] } {
  const answers: Answered[] = []
  const watch: Watch = {
    onResponse: async ({ request, response, schemaPath }) => {
      const type = response.headers.get('content-type')
      const text = await response.clone().text()
      const method = request.method.toLowerCase()
      answers.push({ method, path: schemaPath, status: response.status, type, text })
    },
  }
  return { watch, answers }
}

/** What must be there for the scenario to go on. */
export function need<Value>(value: Value | null | undefined): Value {
  if (value === undefined || value === null) throw new Error('the answer is not as described')
  return value
}
