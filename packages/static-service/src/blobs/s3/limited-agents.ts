import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'

/** Agents whose connections end after so many milliseconds without progress in either direction. */
export function limitedAgents(
  timeoutMs: number,
): Record<'httpAgent', http.Agent> & Record<'httpsAgent', https.Agent> {
  const options = { keepAlive: true, maxSockets }
  return {
    httpAgent: limit(new http.Agent(options), timeoutMs),
    httpsAgent: limit(new https.Agent(options), timeoutMs),
  }
}

const maxSockets = 512

// The time limit of the AWS SDK for this begins three seconds late.
function limit<Agent extends http.Agent>(agent: Agent, timeoutMs: number): Agent {
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (options, callback) => {
    // Both agents connect by sockets; their type allows any stream.
    const socket = connect(options, callback) as Socket
    socket.on('timeout', () => socket.destroy(new SilenceError(timeoutMs)))
    return socket.setTimeout(timeoutMs)
  }
  const reuse = agent.reuseSocket.bind(agent)
  agent.reuseSocket = (stream, request) => {
    reuse(stream, request)
    // The agent has removed the limit while the connection was idle.
    request.setTimeout(timeoutMs)
  }
  return agent
}

/** Named as the SDK names its own. */
class SilenceError extends Error {
  override name = 'TimeoutError'

  constructor(timeoutMs: number) {
    super(`the object store made no progress for ${timeoutMs} ms`)
  }
}
