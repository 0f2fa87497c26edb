import type { FaultInput } from '@domains-and-files/registrar-sandbox'
import type { FakeClock } from './fake-clock.ts'
import { type Service, start } from './start.ts'

// A zone in which every lossy handling would show: odd TTLs and dots, an MX preference, an e-mail type to keep.
const zone = [
  { name: '@', type: 'MX', address: 'mx1.example.net.', mxPref: 0, ttl: 1799 },
  { name: '@', type: 'TXT', address: 'v=spf1 +a "x" ;  ~all', ttl: 60 },
  { name: 'Alias', type: 'CNAME', address: 'Target.Example.net', ttl: 60000 },
  { name: 'www', type: 'A', address: '192.0.2.1', ttl: 300 },
]
/** The service before a registrar with a zone of example.com. */
export const startZone = (env: Record<string, string> = {}, clock?: FakeClock) =>
  start({
    domains: [{ name: 'example.com', emailType: 'MX', hosts: zone }],
    env,
    ...(clock ? { clock } : {}),
  })

/** The same before an answer with a fault. Only where nothing is answered is there something to wait for. */
export const startBefore = ({ kind }: FaultInput) =>
  startZone(kind === 'hang' || kind === 'slow' ? { REGISTRAR_TIMEOUT_MS: '1000' } : {})

export const add = (service: Service, name = 'new') =>
  service.call('POST', '/api/domains/example.com/dns/hosts/A', {
    body: { name, address: '192.0.2.77' },
  })

/** The record of `add` as the registrar has it. */
export const newRow = 'new A 192.0.2.77 1800 10'

/** Faults of one answer, after which a call may pass; the status and the code where they do not. */
export const passing: [string, FaultInput, number, string][] = [
  ['cut within its body', { kind: 'cut', framing: 'length' }, 502, 'registrar_bad_answer'],
  ['cut with a clean end', { kind: 'cut', framing: 'close' }, 502, 'registrar_bad_answer'],
  ['without its last tag', { kind: 'no_close' }, 502, 'registrar_bad_answer'],
  ['empty', { kind: 'empty' }, 502, 'registrar_bad_answer'],
  ['HTML', { kind: 'html', status: 200 }, 502, 'registrar_bad_answer'],
  ['HTML in a 503', { kind: 'html' }, 502, 'registrar_error'],
  ['HTTP 500', { kind: 'status', status: 500 }, 502, 'registrar_error'],
  ['HTTP 302', { kind: 'status', status: 302 }, 502, 'registrar_bad_answer'],
  ['a DOCTYPE with an entity', { kind: 'doctype' }, 502, 'registrar_bad_answer'],
  ['of another command', { kind: 'wrong_command' }, 502, 'registrar_bad_answer'],
  ['an error without a number', { kind: 'status_error_without_errors' }, 502, 'registrar_error'],
  ['error 3050900', { kind: 'error', number: 3050900 }, 502, 'registrar_error'],
  ['error 5050900 beside data', { kind: 'error', number: 5050900, skeleton: true }, 502, 'registrar_error'],
  ['a reset', { kind: 'reset' }, 502, 'registrar_unreachable'],
  ['lost', { kind: 'lost' }, 502, 'registrar_unreachable'],
  ['too slow', { kind: 'slow', ms: 5_000 }, 504, 'registrar_timeout'],
  ['begun and never ended', { kind: 'hang' }, 504, 'registrar_timeout'],
  ['12 MiB of junk', { kind: 'junk', mib: 12 }, 502, 'registrar_bad_answer'],
]

/** Answers that repeating does not change; the status and the code. */
export const final: [string, FaultInput, number, string][] = [
  ['wrong credentials', { kind: 'error', number: 1011102 }, 502, 'registrar_auth'],
  ['an address that is not on the list', { kind: 'error', number: 1011150 }, 502, 'registrar_auth'],
  ['an unknown domain', { kind: 'error', number: 2019166 }, 404, 'domain_not_found'],
  ['an unknown domain beside data', { kind: 'error', number: 2016166, skeleton: true }, 404, 'domain_not_found'],
  ['no right', { kind: 'error', number: 2030166 }, 403, 'domain_not_editable'],
  ['other nameservers', { kind: 'error', number: 2030288 }, 409, 'dns_not_managed'],
  ['a wrong parameter', { kind: 'error', number: 2011170 }, 422, 'registrar_rejected'],
  ['an error of another kind', { kind: 'error', number: 3031510 }, 502, 'registrar_error'],
]
