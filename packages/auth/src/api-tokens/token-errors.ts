import { HttpError } from '@domains-and-files/http'

export const tokenNotFound = (id: string) =>
  new HttpError(404, 'token_not_found', `No API token ${id}`)

export const tooManyTokens = (max: number) =>
  new HttpError(409, 'too_many_tokens', `You have ${max} API tokens: delete some first`)

export const exceedsOwner = (detail: string) => new HttpError(403, 'forbidden', detail)

export const tokensNotStored = (cause: unknown) =>
  new HttpError(
    503,
    'unavailable',
    'Cannot write the API tokens: nothing was changed; try again later',
    {
      cause,
      headers: { 'retry-after': '10' },
    },
  )

export const loginRequired = () =>
  new HttpError(403, 'forbidden', 'An API token cannot manage tokens: log in with a password')
