import { CallFailed } from '../../src/registrar/call-failed.ts'

// The commands as the client sends them, and what their answers must contain.
export const getHosts = {
  command: 'namecheap.domains.dns.getHosts',
  result: 'DomainDNSGetHostsResult',
  domain: 'example.com',
}
export const getInfo = {
  command: 'namecheap.domains.getInfo',
  result: 'DomainGetInfoResult',
  domain: 'example.com',
}
export const getList = {
  command: 'namecheap.domains.getList',
  result: 'DomainGetListResult',
  domain: '',
}
export const getServers = {
  command: 'namecheap.domains.dns.getList',
  result: 'DomainDNSGetListResult',
  domain: 'example.com',
}
export const setHosts = {
  command: 'namecheap.domains.dns.setHosts',
  result: 'DomainDNSSetHostsResult',
  domain: 'example.com',
}

/** The failure of a call that must fail. */
export function failureOf(read: () => unknown): CallFailed {
  try {
    read()
  } catch (error) {
    if (error instanceof CallFailed) return error
    throw error
  }
  throw new Error('it did not fail')
}
