import fc from 'fast-check'

const directory = fc.constantFrom('', 'a/', 'b/', 'a/b/')
const leaf = fc.constantFrom('a', 'b', 'x.txt', 'y.txt', 'b/x.txt')
const path = fc.tuple(directory, leaf).map((parts) => parts.join(''))
const content = fc.constantFrom('', 'one', 'two', 'three', 'five', 'six', 'four '.repeat(20_000))
const files = fc.dictionary(leaf, content, { maxKeys: 4, noNullPrototype: true })
const tree = {
  directory,
  files,
  isMerge: fc.boolean(),
  isDryRun: fc.constantFrom(false, false, true),
}
const isRecorded = fc.constantFrom(false, false, true)
/** Which of the changes, or versions, so far. */
const pick = fc.nat()

/** What the history of files is made of. */
export const historyAction = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('put' as const), path, content }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('remove' as const),
      paths: fc.uniqueArray(path, { minLength: 1, maxLength: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('removeBelow' as const), directory }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('forget' as const),
      paths: fc.uniqueArray(path, { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      paths: fc.oneof(fc.tuple(path, path), fc.tuple(directory, directory)),
      overwrite: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('archive' as const), isRecorded, ...tree }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('manifest' as const), isRecorded, ...tree }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('copy' as const),
      isRecorded,
      ...tree,
      from: directory,
      at: fc.constantFrom('now', 'change', 'version'),
      pick,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('revert' as const), pick, overwrite: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('version' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('restart' as const),
      keepDays: fc.constantFrom(30, 30, 30, 0),
      keepVersions: fc.constantFrom(2, 1, 0),
      isLater: fc.boolean(),
    }),
  },
)

export type HistoryAction = typeof historyAction extends fc.Arbitrary<infer Value> ? Value : never
export type ActionOf<Kind> = Extract<HistoryAction, { do: Kind }>
