import { tmpdir } from 'node:os'
import { apiKey } from '../../packages/domain-service/test/support/start.ts'
import { password } from '../support/test-users.ts'

// What no response and no log line may contain. Stacks belong to logged bugs only.
const secrets: [string, RegExp | string][] = [
  ['a password', password],
  ['the key of the registrar', apiKey],
  ['the secret that signs', 'a secret of these tests'],
  ['the token of the metrics', 'metrics-token-of-tests'],
  ['a token', /eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}/],
  ['a hash of a password', '$argon2'],
  ['a place on the disk', `${tmpdir()}/`],
  ['a place of the sources', import.meta.dirname.replace(/test.*$/, '')],
  ['a stack', /\bat \S+ \(?(?:file|node):/],
  ['SQL', /SQLITE_|\b(?:select|insert into|delete from|update) \w+ (?:from|where|set|values)\b/i],
]

/** Secrets found in a text. */
export const leaksIn = (text: string): string[] =>
  secrets.flatMap(([what, secret]) =>
    (typeof secret === 'string' ? text.includes(secret) : secret.test(text)) ? [what] : [],
  )
