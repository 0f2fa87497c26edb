// The limit of Node: `node:http` with one prepared response and no log. `node plain-http.ts response.json`
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { PreparedResponse } from './prepared-response.ts'

// Written by the bench from this type.
const prepared = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as PreparedResponse
const { status, headers, body } = prepared
const bytes = body && 'base64' in body ? Buffer.from(body.base64, 'base64') : undefined
const length = bytes ? { 'content-length': String(bytes.length) } : {}
const fields = Object.entries({ 'x-request-id': crypto.randomUUID(), ...headers, ...length }).flat()

createServer((_request, response) => {
  response.writeHead(status, fields)
  response.end(bytes)
}).listen(Number(process.env.PORT), '127.0.0.1')
