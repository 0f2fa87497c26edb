import { parentPort } from 'node:worker_threads'
import { CallFailed } from '../../src/registrar/call-failed.ts'
import { parseResponse } from '../../src/registrar/transport.ts'

// A worker thread that parses the documents sent to it, and answers what became of each.
parentPort?.on('message', (document: string) => parentPort?.postMessage(parse(document)))

function parse(document: string): 'answered' | 'refused' {
  try {
    parseResponse(document)
    return 'answered'
  } catch (error) {
    if (error instanceof CallFailed) return 'refused'
    throw error
  }
}
