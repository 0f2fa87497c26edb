/** Makes the error that the service answers a caller with; handed in, since this package does not know HTTP errors. */
export type CreateHttpError = (
  status: number,
  code: string,
  detail: string,
  headers?: Record<string, string>,
) => Error

/** Why a service must not start, in one plain sentence for the person who starts it. */
export class StartRefusedError extends Error {}
