import { authMigrations } from '@domains-and-files/auth'
import { eventMigrations, webhookMigrations } from '@domains-and-files/events'
import { contentMigrations } from './blobs/s3/content-commit.ts'
import { catalogMigrations } from './catalog/migrations.ts'
import { sharingTables } from './sharing/tables.ts'
import { uploadMigrations } from './uploads/uploads.ts'

/** All tables of this service in PostgreSQL, for the service and its commands. */
export const sharedMigrations = {
  ...authMigrations,
  catalog: catalogMigrations,
  ...eventMigrations,
  ...webhookMigrations,
  contents: contentMigrations,
  sharing: sharingTables,
  ...uploadMigrations,
}
