import type { Account } from '../account/account.ts'
import type { Domain } from '../account/domain.ts'
import { domainMissing, domainNotFound } from '../protocol/errors.ts'
import type { Params } from '../protocol/parameters.ts'
import type { Element } from '../protocol/xml.ts'

export interface Context {
  account: Account
  now: () => number
  /** An MX sent again with another preference keeps the old one. */
  keepsMxPref: boolean
}

/** Commands by their names without `namecheap.`: parameters in, the result out; a refusal is thrown. */
export type Commands = Record<string, (params: Params, context: Context) => Element[]>

/** The domain named by DomainName. `skeleton`: the result in the error for an unknown domain. */
export function findNamed(
  { account }: Context,
  params: Params,
  skeleton: (name: string) => Element[] = () => [],
): Domain {
  const name = params.require('DomainName', domainMissing)
  const domain = account.find(name)
  if (!domain) throw domainNotFound(skeleton(name))
  return domain
}
