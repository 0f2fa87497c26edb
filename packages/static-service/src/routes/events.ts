import { allowsPath, type Rights } from '@domains-and-files/auth'
import type { EventSource } from '@domains-and-files/events'
import type { FilesChanged } from '../catalog/changes/stored-rows.ts'
import type { VersionRow } from '../catalog/tables.ts'
import type { Link } from '../sharing/links.ts'
import { describeChange } from './history/changes.ts'
import { describeVersion } from './history/versions.ts'
import { describeLink, maySee } from './links.ts'
import { change } from './schemas.ts'

/** What this service tells of, for GET /api/events and webhooks. */
export const eventSource: EventSource = {
  types: ['files.changed', 'version.created', 'link.used_up'],
  scope: 'folders',
  // The catalog appended all.
  describe: ({ type, data }, reader) => {
    if (type === 'version.created') return describeVersion(data as VersionRow)
    if (type === 'files.changed') return describeFiles(data as FilesChanged, reader)
    return maySee(reader, data as Link) ? describeLink(data as Link) : undefined
  },
  example: { type: 'files.changed', data: change },
}

/** A reader without access to all directories of a change gets its own ones, and no counts. */
function describeFiles({ entry, directories, isDeep }: FilesChanged, rights: Rights) {
  const { folders } = rights
  const described = describeChange(entry)
  if (!folders || directories.every((directory) => allowsPath(rights, directory))) return described
  const isInside = (directory: string) =>
    allowsPath(rights, directory) || (isDeep && folders.some((own) => own.startsWith(directory)))
  if (!directories.some(isInside)) return undefined
  const { id, at, by, token, request_id, action, version, paths } = described
  const own = paths.filter((path) => allowsPath(rights, path))
  return { id, at, by, token, request_id, action, prefix: null, version, paths: own }
}
