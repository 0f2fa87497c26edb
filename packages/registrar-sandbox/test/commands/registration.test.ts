import { expect, test } from 'vitest'
import { split, start } from '../support/start.ts'

const domains = [{ name: 'ours.com', expires: '2027-02-10', isLocked: true }]

test('getContacts describes each role, and the privacy contact', async () => {
  await using registrar = await start({ domains })

  const answer = await registrar.call('domains.getContacts', { DomainName: 'OURS.com' })

  expect(answer.first('DomainContactsResult')).toMatchObject({ '@Domain': 'ours.com' })
  for (const role of ['Registrant', 'Tech', 'Admin', 'AuxBilling'])
    expect(answer.list(role).map((each) => each['@ReadOnly'])).toEqual(['false', 'true'])
  expect(answer.list('EmailAddress')).toHaveLength(8)
})

test('getRegistrarLock tells the lock', async () => {
  await using registrar = await start({ domains })

  const answer = await registrar.call('domains.getRegistrarLock', { DomainName: 'ours.com' })

  expect(answer.first('DomainGetRegistrarLockResult')).toMatchObject({
    '@Domain': 'ours.com',
    '@RegistrarLockStatus': 'true',
  })
})

test('renew adds years to the expiry', async () => {
  await using registrar = await start({ domains })

  const answer = await registrar.call('domains.renew', { DomainName: 'ours.com', Years: '2' })
  const info = await registrar.call('domains.getInfo', { DomainName: 'ours.com' })

  expect(answer.first('DomainRenewResult')).toMatchObject({
    '@DomainName': 'ours.com',
    '@Renew': 'true',
    '@ChargedAmount': '25.9600',
  })
  expect(answer.first('ExpiredDate').text).toBe('02/10/2029 12:00:00 AM')
  expect(info.first('ExpiredDate').text).toBe('02/10/2029')
})

test.each(['0', '11', 'two'])('renew refuses %s years', async (Years) => {
  await using registrar = await start({ domains })

  const answer = await registrar.call('domains.renew', { DomainName: 'ours.com', Years })

  expect(answer.errors[0]?.[0]).toBe('2011288')
})

test('an unknown domain is 2019166 with the skeleton of the result', async () => {
  await using registrar = await start({ domains })
  const results = {
    'dns.getHosts': 'DomainDNSGetHostsResult',
    'dns.setHosts': 'DomainDNSSetHostsResult',
    'dns.getList': 'DomainDNSGetListResult',
  }

  for (const [command, result] of Object.entries(results)) {
    const answer = await registrar.call(`domains.${command}`, split('theirs.com'))
    expect(answer.errors).toEqual([['2019166', 'Domain name not found']])
    expect(answer.first(result)).toMatchObject({ '@Domain': 'theirs.com' })
  }
})

test('a page size out of range is 2013275 with an empty list and zero paging', async () => {
  await using registrar = await start({ domains })

  const answer = await registrar.call('domains.getList', { PageSize: '5' })

  expect(answer.errors).toEqual([['2013275', 'Parameter PageSize is OutOfRange']])
  expect(answer.list('DomainGetListResult')).toHaveLength(1)
  expect(['TotalItems', 'CurrentPage', 'PageSize'].map((name) => answer.first(name).text)).toEqual(['0', '0', '0'])
})

test('getTldList describes suffixes as documented', async () => {
  await using registrar = await start({ domains })

  const answer = await registrar.call('domains.getTldList')

  expect(answer.list('Tld').map((tld) => tld['@Name'])).toContain('com')
  expect(answer.list('Tld').find((tld) => tld['@Name'] === 'co.uk')).toMatchObject({
    '@NonRealTime': 'false',
    '@Category': 'P',
    text: '.co.uk domains',
  })
})
