import { expect, it } from 'vitest'
import { changeStatuses, type StoredChange } from '../../src/ledger/ledger.ts'
import { Change, describeChange, describeEntry, HistoryEntry } from '../../src/routes/change-schema.ts'

const record = { id: '0123456789ab', name: 'a', type: 'MX', address: 'b.test', ttl: 60, mx_pref: 1 }
const errors = [{ path: '/hosts/0/name', message: 'is missing' }]

// Of each optional field, one with a value.
const changes = changeStatuses.map(
  (status, at): StoredChange => ({
    id: at + 1,
    domain: 'example.com',
    status,
    by: 'alice',
    token: 'terraform',
    caller: 'secret-id',
    request_id: 'r',
    reason: 'late_write',
    approved_by: 'bob',
    seen_since: 1,
    created_at: 2,
    sent_at: 3,
    ended_at: 4,
    is_async: 1,
    is_held: 1,
    verified: 0,
    summary: { added: [record], removed: [record], kept: 1, omitted: { added: 1, removed: 0 } },
    email_type_before: 'NONE',
    email_type_after: 'MX',
    warnings: ['one', { rrset: record, text: 'two' }],
    problem: {
      status: 400,
      code: 'validation_failed',
      detail: 'no',
      errors,
      headers: { etag: '' },
    },
  }),
)

// The lists are not checked by their schemas, which would leave out what they do not name.
it.each([
  ['history', HistoryEntry, describeEntry],
  ['changes', Change, describeChange],
] as const)('the list of %s has the fields of its schema and no others', (_, schema, describe) => {
  const described = changes.map((change) => describe(change, { caller: { role: 'viewer' } }))
  const shown: object[] = JSON.parse(JSON.stringify(described))

  expect(schema.array().parse(shown)).toEqual(shown)
  expect(new Set(shown.flatMap((each) => Object.keys(each)))).toEqual(
    new Set(Object.keys(schema.shape).filter((key) => key !== 'etag')),
  )
})
