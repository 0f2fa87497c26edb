import { type Problem, ProblemError } from './problem-error.ts'

/** The data of an openapi-fetch result. @throws {ProblemError} for an error response. */
export async function unwrap<Data>(
  result: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await result
  // Both services describe every error as a problem.
  if (error !== undefined) throw new ProblemError(error as Problem, response.headers)
  if (!response.ok) throw await ProblemError.from(response)
  // A 204 has no body: its type is undefined.
  return data as Data
}

/**
 * The pages of a list with cursor pagination (`next`): concurrent inserts and deletes neither skip nor repeat other rows.
 * `read` gets what its query must have: `pages((position) => unwrap(files.api.GET('/api/files', { params: { query: position } })))`.
 */
export async function* pages<Page extends { next: string | null }>(
  read: (position: { after?: string }) => Promise<Page>,
): AsyncGenerator<Page> {
  for (let position = {}; ; ) {
    const page = await read(position)
    yield page
    if (!page.next) return
    position = { after: page.next }
  }
}
