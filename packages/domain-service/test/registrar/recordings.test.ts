import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { dataDirectory } from '../../../../test/support/not-tested.ts'
import { CallFailed } from '../../src/registrar/call-failed.ts'
import type { Element } from '../../src/registrar/responses.ts'
import {
  readDomainInfo,
  readDomainList,
  readNameserverList,
  readZone,
  requireSuccess,
} from '../../src/registrar/responses.ts'
import { readEnvelope } from '../../src/registrar/transport.ts'

// Answers recorded by others, which are read in place.
const folder = dataDirectory('REGISTRAR_DATA')
const files = existsSync(folder) ? globSync('answers/**/*.xml', { cwd: folder }).sort() : []

const readers: Record<
  string,
  { result: string; read: (result: Element, domain: string, response: Element) => unknown }
> = {
  'namecheap.domains.getlist': { result: 'DomainGetListResult', read: readDomainList },
  'namecheap.domains.getinfo': {
    result: 'DomainGetInfoResult',
    read: readDomainInfo,
  },
  'namecheap.domains.dns.getlist': {
    result: 'DomainDNSGetListResult',
    read: readNameserverList,
  },
  'namecheap.domains.dns.gethosts': {
    result: 'DomainDNSGetHostsResult',
    read: readZone,
  },
  'namecheap.domains.dns.sethosts': {
    result: 'DomainDNSSetHostsResult',
    read: requireSuccess,
  },
}

const codes: Record<string, string> = {
  '2019166': 'domain_not_found',
  '2030166': 'domain_not_found',
  '1011150': 'registrar_auth',
  '2050900': 'registrar_error',
  '4711': 'registrar_error',
}

interface Recording {
  text: string
  command: string
  /** Whether this service sends the command. */
  isOurs: boolean
  domain: string
  errors: string[]
}

// Some recordings are templates of other projects' tests: their gaps get plausible values.
function readRecording(file: string): Recording {
  const text = readFileSync(join(folder, file), 'utf8')
    .replace(/(Domain|DomainName)="%s"/g, '$1="example.com"')
    .replace(/(EmailType|ProviderType)="%s"/g, '$1="FREE"')
    .replace(/Number="%[sd]"/g, 'Number="4711"')
    .replace(/"%[st]"/g, '"true"')
    .replace(/%[dt]/g, '1')
    .replace(/%s/g, '')
  const result = /<CommandResponse[^>]*>\s*<(\w+Result)\b/.exec(text)?.[1] ?? ''
  const said = /<CommandResponse Type="([^"]+)"/.exec(text)?.[1] ?? /<RequestedCommand>([^<]+)</.exec(text)?.[1]
  const byResult = Object.keys(readers).find((name) => readers[name]?.result === result)
  const command = said?.toLowerCase() ?? byResult ?? (result || 'namecheap.domains.dns.gethosts')
  return {
    text,
    command,
    isOurs: command in readers,
    domain: /\b(?:Domain|DomainName)="([^"]+)"/.exec(text)?.[1]?.toLowerCase() ?? 'example.com',
    errors: [...text.matchAll(/<Error Number="(\d+)"/g)].map((match) => match[1] ?? ''),
  }
}

const canonical: Record<string, string> = {
  'namecheap.domains.getlist': 'namecheap.domains.getList',
  'namecheap.domains.getinfo': 'namecheap.domains.getInfo',
  'namecheap.domains.dns.getlist': 'namecheap.domains.dns.getList',
  'namecheap.domains.dns.gethosts': 'namecheap.domains.dns.getHosts',
  'namecheap.domains.dns.sethosts': 'namecheap.domains.dns.setHosts',
}

function readAs(command: string, { text, domain }: Recording): unknown {
  const reader = readers[command]
  if (!reader) throw new Error(`there is no reader for ${command}`)
  const { response, result } = readEnvelope(text, {
    command: canonical[command] ?? command,
    result: reader.result,
    domain,
  })
  return reader.read(result, domain, response)
}

const codeOf = (run: () => unknown): string => {
  try {
    run()
    return 'accepted'
  } catch (error) {
    if (error instanceof CallFailed) return error.code
    throw error
  }
}

// Another way of reading than the one under test: attributes picked from the text.
const pick = (text: string, tag: string) =>
  [...text.matchAll(new RegExp(`<${tag}\\s([^>]*?)/?>`, 'gi'))].map(([, inner = '']) =>
    Object.fromEntries(
      [...inner.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [
        name,
        value.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
      ]),
    ),
  )

test(
  files.length > 0 ? `${files.length} recorded answers are available` : `no recorded answers in ${folder}: not tested`,
  () => {
    expect(files.length > 0).toBe(existsSync(folder))
  },
)

describe.each(files)('%s', (file) => {
  const recording = readRecording(file)
  const { text, command, isOurs, errors } = recording

  if (errors.length > 0 || /Status="ERROR"/.test(text)) {
    test('is mapped to its error', () => {
      const code = codeOf(() => readAs(isOurs ? command : 'namecheap.domains.dns.gethosts', recording))

      expect(code).toBe(codes[errors[0] ?? ''])
    })
  } else if (!isOurs) {
    test('is refused as an answer to each of our commands', () => {
      expect(Object.keys(readers).map((each) => codeOf(() => readAs(each, recording)))).toEqual(
        Object.keys(readers).map(() => 'registrar_bad_answer'),
      )
    })
  } else if (!/<\w+Result\b/.test(text) || /<DomainGetInfoResult\/>/.test(text)) {
    test('is refused as incomplete', () => {
      expect(codeOf(() => readAs(command, recording))).toBe('registrar_bad_answer')
    })
  } else {
    test('is read', () => {
      const read = readAs(command, recording)

      expect(read).toEqual(expectationOf(recording))
    })
    test('is refused as an answer to any other command', () => {
      const others = Object.keys(readers).filter((each) => each !== command)
      expect(others.map((each) => codeOf(() => readAs(each, recording)))).toEqual(
        others.map(() => 'registrar_bad_answer'),
      )
    })
    test('is refused when it is about another domain', () => {
      const elsewhere = { ...recording, domain: 'elsewhere.example' }
      const expected = command === 'namecheap.domains.getlist' ? 'accepted' : 'registrar_bad_answer'
      expect(codeOf(() => readAs(command, elsewhere))).toBe(expected)
    })
    test('is refused when truncated', () => {
      const cut = [0.1, 0.5, 0.9, 0.99].map((part) => ({
        ...recording,
        text: text.trimEnd().slice(0, Math.floor(text.trimEnd().length * part)),
      }))
      expect(cut.map((each) => codeOf(() => readAs(command, each)))).toEqual(cut.map(() => 'registrar_bad_answer'))
    })
  }
})

function expectationOf({ text, command, domain }: Recording): unknown {
  const [dns] = pick(text, 'DnsDetails')
  const servers = [...text.matchAll(/<Nameserver>([^<]+)</g)].map((match) => match[1]?.toLowerCase())
  if (command === 'namecheap.domains.dns.sethosts') return undefined
  if (command === 'namecheap.domains.dns.gethosts') {
    const [zone] = pick(text, 'DomainDNSGetHostsResult')
    return {
      domain,
      usesRegistrarDns: zone?.IsUsingOurDNS !== 'false',
      emailType: zone?.EmailType || undefined,
      rows: pick(text, 'host').map((host) => ({
        name: host.Name,
        type: host.Type,
        address: host.Address,
        mxPref: host.MXPref,
        ttl: host.TTL,
        dynamic: host.IsDDNSEnabled === 'true',
      })),
    }
  }
  if (command === 'namecheap.domains.dns.getlist') {
    const [list] = pick(text, 'DomainDNSGetListResult')
    return {
      uses_registrar_dns: list?.IsUsingOurDNS === 'true',
      nameservers: servers.map((name) => ({ name })),
    }
  }
  if (command === 'namecheap.domains.getlist') {
    const domains = pick(text, 'Domain').map((each) =>
      expect.objectContaining({
        name: each.Name?.toLowerCase(),
        id: each.ID,
        auto_renew: each.AutoRenew === undefined ? null : each.AutoRenew === 'true',
      }),
    )
    return { domains, total: Number(/<TotalItems>(\d+)</.exec(text)?.[1]) }
  }
  return expect.objectContaining({
    name: domain,
    dns: expect.objectContaining({
      provider: dns?.ProviderType ?? null,
      host_count: dns?.HostCount === undefined ? null : Number(dns.HostCount),
      nameservers: servers,
    }),
  })
}
