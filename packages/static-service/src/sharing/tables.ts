import { accessRuleTables } from './access-rules.ts'
import { linkTables } from './links.ts'

/** In PostgreSQL, or beside the API tokens in DATA_DIR. */
export const sharingTables = [...accessRuleTables, ...linkTables]

/** The sharing tables in a backup. */
export const sharedTables = [
  { name: 'access_rules', key: ['prefix'] },
  { name: 'links', key: ['id'] },
]
