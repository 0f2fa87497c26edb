import { expect, test } from 'vitest'
import { z } from 'zod'
import { groupRights, rightsOfGroups } from '../../src/oidc/group-rights.ts'
import { authConfig, authRules, authSettings } from '../../src/settings.ts'

const roles = groupRights.parse(
  'ops=admin, shop=editor:Example.com|*.example.net, shop two=editor:example.org, both=editor:docs/|a.org, web=editor:docs/|site/, free=editor, *=viewer',
)

test.each([
  [[], 'domains', { role: 'viewer' }],
  [['unknown'], 'folders', { role: 'viewer' }],
  [['ops', 'shop'], 'domains', { role: 'admin' }],
  [['shop'], 'domains', { role: 'editor', domains: ['example.com', '*.example.net'] }],
  [['shop', 'shop two'], 'domains', { role: 'editor', domains: ['example.com', '*.example.net', 'example.org'] }],
  [['shop', 'free'], 'domains', { role: 'editor' }],
  [['shop'], 'folders', { role: 'viewer' }],
  [['web'], 'folders', { role: 'editor', folders: ['docs/', 'site/'] }],
  [['web'], 'domains', { role: 'viewer' }],
  [['both'], 'domains', { role: 'editor', domains: ['a.org'] }],
  [['both'], 'folders', { role: 'editor', folders: ['docs/'] }],
] as const)('the groups %j give in a service of %s the rights %j', (groups, kind, rights) => {
  expect(rightsOfGroups(groups, { roles, kind })).toEqual(rights)
})

test('no group that is named gives nothing', () => {
  const named = groupRights.parse('shop=viewer')

  expect(rightsOfGroups(['other', '*'], { roles: named, kind: 'domains' })).toBeUndefined()
})

test.each(['', 'shop', 'shop=owner', 'shop=editor:', 'shop=editor:a b', 'shop=editor:x.org|'])(
  'OIDC_ROLES is not %j',
  (text) => {
    expect(groupRights.safeParse(text).success).toBe(false)
  },
)

const Settings = z.object({
  ...authSettings,
  DATA_DIR: z.string(),
  CORS_ORIGIN: z.array(z.string()),
})
const base = { DATA_DIR: 'data', CORS_ORIGIN: [] }
const complete = {
  ...base,
  OIDC_ISSUER: 'https://id.example.com/realms/a',
  OIDC_CLIENT_ID: 'files',
  OIDC_ROLES: '*=viewer',
  PUBLIC_BASE_URL: 'https://files.example.com/',
}
function faultsOf(settings: object) {
  const { data, error } = Settings.safeParse(settings)
  if (error) return error.issues.map(({ path }) => path.join())
  return Object.entries(authRules(data)).flatMap(([name, fault]) => (fault ? [name] : []))
}

test('single sign-on is on with an issuer, and then needs the rest', () => {
  expect(authConfig(Settings.parse(base)).oidc).toBeUndefined()
  expect(authConfig(Settings.parse(complete)).oidc).toMatchObject({
    baseUrl: 'https://files.example.com',
    scopes: 'openid profile email groups',
    usernameClaim: 'preferred_username',
    groupsClaim: 'groups',
  })
  expect(faultsOf({ ...base, OIDC_ISSUER: complete.OIDC_ISSUER })).toEqual([
    ...['OIDC_CLIENT_ID', 'OIDC_ROLES', 'PUBLIC_BASE_URL'],
  ])
})

test('logins with a password are switched off only where there is another way', () => {
  expect(faultsOf({ ...base, PASSWORD_LOGIN: 'false' })).toEqual(['PASSWORD_LOGIN'])
  expect(faultsOf({ ...complete, PASSWORD_LOGIN: 'false' })).toEqual([])
})

test.each([
  ['http://id.example.com', false],
  ['ftp://id.example.com', false],
  ['https://id.example.com/?a=b', false],
  ['https://user@id.example.com', false],
  ['http://127.0.0.1:8080/realm', true],
  ['http://[::1]:8080', true],
  ['http://localhost:8080', true],
  ['http://127.0.0.1.example.com', false],
])('the issuer may be %s: %s', (issuer, isRight) => {
  expect(faultsOf({ ...complete, OIDC_ISSUER: issuer })).toEqual(isRight ? [] : ['OIDC_ISSUER'])
})
