/**
 * An ES import of `node:http` evaluates every export and so loads the WebSocket client, a tenth of the start time. The
 * builtin module object loads it on demand.
 */
export const { STATUS_CODES, validateHeaderName, validateHeaderValue } =
  process.getBuiltinModule('node:http')
