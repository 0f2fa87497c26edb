import { DatabaseUnavailableError, type Sql } from '../../packages/persistence/src/index.ts'

const methods = ['all', 'get', 'run', 'transaction', 'snapshot']

/** A database that a test takes away right after a commit: what was written stays written, and nothing can be read. */
export function lossyDatabase<Database extends Sql>(database: Database) {
  let state: 'there' | 'lost next' | 'lost' = 'there'
  const call = async (method: unknown, key: string, args: unknown[]) => {
    if (state === 'lost') throw new DatabaseUnavailableError(new Error('lost'))
    if (typeof method !== 'function') throw new TypeError(`${key} is no method`)
    const result = await method.apply(database, args)
    if (state === 'lost next' && key === 'transaction') state = 'lost'
    return result
  }
  const sql = new Proxy(database, {
    get(target, key) {
      const member = Reflect.get(target, key, target)
      if (typeof key === 'string' && methods.includes(key)) return (...args: unknown[]) => call(member, key, args)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  return {
    sql,
    /** Runs something; from its first transaction on, the database is lost. */
    async losing<Result>(work: () => Promise<Result>): Promise<Result> {
      state = 'lost next'
      try {
        return await work()
      } finally {
        state = 'there'
      }
    },
  }
}
