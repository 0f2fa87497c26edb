import { expect, it } from 'vitest'
import { changeStatuses, type StoredChange } from '../../src/ledger/ledger.ts'
import {
  Change,
  describeChange,
  describeEntry,
  HistoryEntry,
} from '../../src/routes/change-schema.ts'

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
    callerId: 'secret-id',
    requestId: 'r',
    reason: 'late_write',
    approvedBy: 'bob',
    seenSince: new Date(1),
    createdAt: new Date(2),
    sentAt: new Date(3),
    endedAt: new Date(4),
    isAsync: true,
    isHeld: true,
    verified: false,
    summary: { added: [record], removed: [record], kept: 1, omitted: { added: 1, removed: 0 } },
    emailTypeBefore: 'NONE',
    emailTypeAfter: 'MX',
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
