import { accessRuleTables } from './access-rules.ts'

/** In PostgreSQL, or beside the API tokens in DATA_DIR. */
export const sharingTables = [...accessRuleTables]

/** Those of them that a backup holds. */
export const sharedTables = [{ name: 'access_rules', key: ['prefix'] }]
