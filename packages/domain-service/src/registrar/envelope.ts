import { registrarError } from '../errors.ts'
import { badAnswer, badResult, CallFailed } from './call-failed.ts'
import { childOf, childrenOf, type Element } from './element.ts'
import { mapRegistrarErrors } from './error-mapping.ts'
import { parseResponse } from './xml.ts'

export interface Expected {
  command: string
  /** The name of the result element. */
  result: string
  /** The domain in question; empty for a command about the whole account. */
  domain: string
}

export interface Envelope {
  response: Element
  result: Element
}

/**
 * Reads the envelope of an answer. `Status` and `Errors` come first: a refused command can carry a result that looks
 * like data. The answer must belong to this command and have exactly one result element.
 * @throws {CallFailed}
 */
export function readEnvelope(
  text: string,
  { command, result: resultName, domain }: Expected,
): Envelope {
  const root = parse(text)
  const errors = childrenOf(childOf(root, 'Errors'), 'Error').map((error) => ({
    number: error.attributes.Number?.trim() ?? '',
    words: error.text,
  }))
  if (errors.length > 0) throw mapRegistrarErrors(errors, command, domain)
  const status = root.attributes.Status?.toUpperCase()
  if (status !== 'OK') {
    const problem = registrarError(
      `status ${status === 'ERROR' ? 'ERROR' : 'unknown'} without a reason`,
    )
    throw new CallFailed('unknown', problem, { isAnswer: true })
  }

  const response = childOf(root, 'CommandResponse')
  const names = [response?.attributes.Type, childOf(root, 'RequestedCommand')?.text.trim()]
  if (names.some((name) => name && name.toLowerCase() !== command.toLowerCase())) {
    throw badAnswer('belongs to another command')
  }
  const [result, ...more] = childrenOf(response, resultName)
  if (!response || !result || more.length > 0) throw badResult(`has no single ${resultName}`)
  return { response, result }
}

function parse(text: string): Element {
  try {
    return parseResponse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw badAnswer(error.message)
    throw error
  }
}
