import { type Problem, ProblemError } from './problem-error.ts'

/** The data of an openapi-fetch result. @throws {ProblemError} for an error response. */
export async function unwrap<Data>(
  result: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Data> {
  const { data, error, response } = await result
  // Both services describe every error as a problem.
  if (error !== undefined) throw new ProblemError(error as Problem)
  if (!response.ok) throw await ProblemError.from(response)
  // A 204 has no body: its type is undefined.
  return data as Data
}
