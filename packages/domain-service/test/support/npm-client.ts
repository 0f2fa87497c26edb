import http from 'node:http'
import https from 'node:https'
import { createRequire } from 'node:module'

/** The part of the npm client that is used here; the package brings no types. */
export interface NpmClient {
  dns: {
    getHosts(domain: string): Promise<{ EmailType: string; hosts: Record<string, unknown>[] }>
    setHosts(domain: string, hosts: object[], params?: object): Promise<{ IsSuccess: boolean }>
  }
  domains: { getList(options: object): Promise<{ domains: { Name: string }[] }> }
}

export const openNpmClient = (key: string): NpmClient => {
  const Namecheap = createRequire(import.meta.url)('@rqt/namecheap')
  return new Namecheap({ user: 'any', key, sandbox: true, ip: '127.0.0.1' })
}

// The client keeps the `request` that it was loaded with, for all test files of a process: what that leads to is said here.
const service = 'NPM_CLIENT_SERVICE'

/** The npm client knows only the registrar's own hosts: until this is disposed its requests are turned to the service. */
export function turnNpmClients(url: string): Disposable {
  const direct = https.request
  const turned = (options: http.RequestOptions, listener: (answer: http.IncomingMessage) => void) => {
    const { port } = new URL(process.env[service] ?? '')
    const path = `/integrations/registrar${options.path}`
    const to = { protocol: 'http:', hostname: '127.0.0.1', port, path }
    return http.request({ ...options, ...to }, listener)
  }
  process.env[service] = url
  Object.assign(https, { request: turned })
  return {
    [Symbol.dispose]: () => {
      delete process.env[service]
      Object.assign(https, { request: direct })
    },
  }
}
