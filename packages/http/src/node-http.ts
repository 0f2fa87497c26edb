/**
 * What we take of `node:http`. An import of it reads everything that it exports, and so loads a browser's WebSocket with
 * the whole client behind it: a tenth of a start, for what nobody uses.
 */
export const { STATUS_CODES } = process.getBuiltinModule('node:http')
