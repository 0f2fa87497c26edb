import type { IncomingMessage } from 'node:http'
import { truncatedBody } from '../errors.ts'

/** Reads the body of a request; what `read` leaves of it is discarded. @throws {HttpError} `malformed_body` if it is cut. */
export async function readBody<T>(
  body: IncomingMessage,
  read: (chunks: AsyncIterable<Buffer>) => Promise<T>,
): Promise<T> {
  try {
    return await read(chunksOf(body))
  } catch (error) {
    // Not destroyed: the socket must stay open for the response.
    body.resume()
    throw error
  }
}

async function* chunksOf(body: IncomingMessage) {
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) yield chunk as Buffer // Without an encoding, it is bytes.
  } catch (error) {
    throw truncatedBody(error)
  }
}
