import * as errors from '../protocol/errors.ts'
import { writeDay } from '../protocol/results.ts'
import { type Element, element } from '../protocol/xml.ts'
import { type Commands, findNamed } from './command.ts'

const yearlyPrice = 12.98
const roles = ['Registrant', 'Tech', 'Admin', 'AuxBilling']
const firstOrder = 600_001

export const registrationCommands: Commands = {
  // The same invented contact in every role.
  'domains.getContacts'(params, context) {
    const domain = findNamed(context, params)
    const contacts = roles.map((role) => describeContact(role, domain.owner, false))
    const privacy = roles.map((role) => describeContact(role, 'privacy', true))
    const attributes = { Domain: domain.name, domainnameid: domain.id }
    const nexus = [element('RegistrantNexus'), element('RegistrantNexusCountry')]
    return [
      element('DomainContactsResult', attributes, [
        ...contacts,
        element('CurrentAttributes', {}, nexus),
        ...(domain.whoisGuard === 'ENABLED' ? [element('WhoisGuardContact', {}, privacy)] : []),
      ]),
    ]
  },

  'domains.getRegistrarLock'(params, context) {
    const domain = findNamed(context, params)
    const attributes = { Domain: domain.name, RegistrarLockStatus: domain.isLocked }
    return [element('DomainGetRegistrarLockResult', attributes)]
  },

  // Adds years to the expiry and charges nothing.
  'domains.renew'(params, context) {
    const domain = findNamed(context, params)
    const years = Number(params.require('Years', errors.domainMissing))
    if (!Number.isInteger(years) || years < 1 || years > 10)
      throw errors.parameterInvalid('Years', 'not a number from 1 to 10')
    const [year = '', ...rest] = domain.expires.split('-')
    domain.expires = [String(Number(year) + years).padStart(4, '0'), ...rest].join('-')
    const attributes = {
      DomainName: domain.name,
      DomainID: domain.id,
      Renew: true,
      OrderID: firstOrder + domain.id,
      TransactionID: firstOrder + 2 * domain.id,
      ChargedAmount: (years * yearlyPrice).toFixed(4),
    }
    const details = element('DomainDetails', {}, [
      element('ExpiredDate', {}, `${writeDay(domain.expires)} 12:00:00 AM`),
      element('NumYears', {}, '0'),
    ])
    return [element('DomainRenewResult', attributes, [details])]
  },
}

function describeContact(role: string, owner: string, isReadOnly: boolean): Element {
  const fields = {
    OrganizationName: isReadOnly ? 'Privacy service of the sandbox' : 'Sandbox Ltd',
    ...{ JobTitle: '', FirstName: 'Robin', LastName: 'Sample' },
    ...{ Address1: '1 Example Street', Address2: '', City: 'Exampleton' },
    ...{ StateProvince: 'EX', StateProvinceChoice: 'P', PostalCode: '00001', Country: 'US' },
    ...{ Phone: '+1.5555550100', Fax: '', EmailAddress: `${owner}@mail.example`, PhoneExt: '' },
  }
  const content = Object.entries(fields).map(([name, value]) => element(name, {}, value))
  return element(role, { ReadOnly: isReadOnly }, content)
}
