import { startProvider } from '../../../packages/auth/test/support/openid.ts'
import { type Everything, startEverything, unlimited } from '../../support/everything.ts'

/** Everything, and a real OpenID provider, where `s1` is sam, an admin of both services, and `w1` wendy, an editor of files. */
export async function startWithProvider(): Promise<Everything> {
  const redirectUris: string[] = []
  const accounts = {
    s1: { name: 'sam', groups: ['ops'] },
    w1: { name: 'wendy', groups: ['web'] },
  }
  const provider = await startProvider(accounts, redirectUris)
  const everything = await startEverything([], {
    ...unlimited,
    OIDC_ISSUER: provider.url,
    OIDC_CLIENT_ID: 'service',
    OIDC_CLIENT_SECRET: 'the secret of the client',
    OIDC_SCOPES: 'openid profile groups',
    OIDC_ROLES: 'ops=admin, web=editor:wendy/',
    OIDC_NAME: 'Test ID',
  })
  for (const service of [everything.domains, everything.files]) redirectUris.push(`${service}/api/auth/oidc/callback`)
  const dispose = async () => {
    await everything[Symbol.asyncDispose]()
    await provider[Symbol.asyncDispose]()
  }
  return { ...everything, provider: provider.url, [Symbol.asyncDispose]: dispose }
}
