import { allowsPath, type Caller } from '@domains-and-files/auth'
import { type App, answers, operations } from '@domains-and-files/http'
import { z } from 'zod'
import { invalidPath, reservedPath } from '../errors.ts'
import { readPath } from '../files/file-path.ts'
import { type AccessRules, ruleNotFound } from '../sharing/access-rules.ts'
import { requireWrittenDirectory } from './callers.ts'
import { restOfUrl, Username } from './schemas.ts'

const folder = 'drafts/'

const RuleRecord = z
  .object({
    prefix: z.string().meta({ examples: [folder] }),
    public: z.boolean().describe('false: only callers of the API read its files'),
    by: Username,
    at: z.iso.datetime(),
  })
  .meta({ id: 'AccessRule' })

const RuleList = z.object({ rules: z.array(RuleRecord) }).meta({ id: 'AccessRules' })

const NewRule = z.strictObject({ public: z.boolean() }).meta({ id: 'NewAccessRule', examples: [{ public: false }] })

const params = restOfUrl('a folder', folder)
const faults = [invalidPath('a segment is empty'), reservedPath('tree')]

const routes = operations({
  shared: { access: 'admin', folders: 'handler', tags: ['access'] },
  listAccessRules: {
    folders: 'none',
    optionalSlash: true,
    summary: 'List the rules of folders',
    description:
      'The rule of the longest prefix decides; files without a rule follow `STATIC_DEFAULT_ACCESS`. Admins limited to folders see the rules inside them.',
    ...answers(200, 'The rules by prefix', RuleList),
  },
  setAccessRule: {
    summary: 'Make a folder, or one file, private or public',
    description:
      'Counts with the response, at every replica. A private file is 404 at `/static/` without credentials that may read it. Copies that caches hold of what was public are out of reach.',
    params,
    body: NewRule,
    errors: faults,
    ...answers(200, 'The rule', RuleRecord),
  },
  removeAccessRule: {
    summary: 'Remove the rule of a folder',
    description: 'Its files follow the next rule above. Counts with the response.',
    params,
    errors: [...faults, ruleNotFound(folder)],
    ...answers(204, 'Removed'),
  },
})

export function registerAccessRoutes(app: App, rules: AccessRules) {
  app.get('/api/access', routes.listAccessRules, async ({ caller }) => {
    return { rules: (await rules.list()).filter(({ prefix }) => allowsPath(caller, prefix)) }
  })
  app.put('/api/access/*', routes.setAccessRule, async ({ body, caller, log, params }) => {
    const prefix = readPrefix(caller, params['*'])
    const rule = { prefix, ...body, by: caller.username, at: new Date().toISOString() }
    await rules.set(rule)
    log.info({ prefix, ...body, user: caller.username }, 'access rule set')
    return rule
  })
  app.delete('/api/access/*', routes.removeAccessRule, async ({ caller, log, params }) => {
    const prefix = readPrefix(caller, params['*'])
    await rules.remove(prefix)
    log.info({ prefix, user: caller.username }, 'access rule removed')
  })
}

// The root has no rule: STATIC_DEFAULT_ACCESS is its own.
const readPrefix = (caller: Caller, text: string) => `${readPath(requireWrittenDirectory(caller, text))}/`
