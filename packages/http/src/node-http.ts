/**
 * An ES import of `node:http` evaluates every export and loads the WebSocket client: a tenth of a start. The builtin
 * module object does not.
 */
export const { STATUS_CODES, validateHeaderName, validateHeaderValue } =
  process.getBuiltinModule('node:http')
