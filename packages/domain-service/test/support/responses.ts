/** Answers in the registrar's shapes, of our own making. */
export const answer = (command: string, inner: string, status = 'OK') => `<?xml version="1.0" encoding="utf-8"?>\r
<ApiResponse Status="${status}" xmlns="http://api.namecheap.com/xml.response">\r
  <Errors />\r
  <Warnings />\r
  <RequestedCommand>${command.toLowerCase()}</RequestedCommand>\r
  <CommandResponse Type="${command}">\r
    ${inner}\r
  </CommandResponse>\r
  <Server>TEST01</Server>\r
  <GMTTimeDifference>--5:00</GMTTimeDifference>\r
  <ExecutionTime>0.01</ExecutionTime>\r
</ApiResponse>`

export const refusal = (number: string, words: string, inner = '') =>
  `<?xml version="1.0" encoding="utf-8"?><ApiResponse Status="ERROR"><Errors><Error Number="${number}">${words}</Error></Errors>${inner}</ApiResponse>`

export const host = (attributes: Record<string, string>) =>
  `<host ${Object.entries({
    HostId: '1',
    MXPref: '10',
    TTL: '1800',
    IsActive: 'true',
    IsDDNSEnabled: 'false',
    ...attributes,
  })
    .map(([name, value]) => `${name}="${escapeXml(value)}"`)
    .join(' ')} />`

export const zoneAnswer = (
  hosts: string[],
  attributes = 'Domain="example.com" EmailType="NONE" IsUsingOurDNS="true"',
) =>
  answer(
    'namecheap.domains.dns.getHosts',
    `<DomainDNSGetHostsResult ${attributes}>${hosts.join('\r\n')}</DomainDNSGetHostsResult>`,
  )

const escapeXml = (value: string) =>
  value
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('"', '&quot;')
    .replace(/[\t\r\n]/g, (c) => `&#${c.charCodeAt(0)};`)
