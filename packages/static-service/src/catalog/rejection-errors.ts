import {
  changeNotFound,
  contentMissing,
  directoryNotFound,
  fileNotFound,
  historyGone,
  invalidPath,
  moveIntoItself,
  pathConflict,
  preconditionFailed,
  quotaExceeded,
  reservedPath,
  revertConflict,
  targetExists,
  treeChanged,
  treeTooLarge,
  versionExists,
} from '../errors.ts'
import { findPathFault } from '../files/path-rules.ts'
import { storageFailure } from '../sqlite/storage-failure.ts'
import type { Outcome, Rejection } from './changes/commands.ts'

/** The error that a client gets for a command that was not done. */
export function errorOf(outcome: Outcome, quota: number | undefined): unknown {
  if ('failed' in outcome) {
    const { failed, code, error = Object.assign(new Error(failed), { code }) } = outcome
    return storageFailure(error)
  }
  if (!('refused' in outcome)) return new Error('the catalog did another command than requested')
  if (outcome.refused === 'too_many_files') return new Error('a large change was not divided')
  if (outcome.refused === 'quota_exceeded') return quotaExceeded(quota ?? 0)
  return errors[outcome.refused](outcome.path, outcome.paths ?? [outcome.path])
}

const errors: Record<
  Exclude<Rejection, 'quota_exceeded' | 'too_many_files'>,
  (path: string, paths: string[]) => Error
> = {
  path_conflict: pathConflict,
  target_exists: (_path, paths) => targetExists(paths),
  move_into_itself: moveIntoItself,
  invalid_target: invalidTarget,
  content_changed: preconditionFailed,
  content_missing: contentMissing,
  precondition_failed: preconditionFailed,
  file_not_found: fileNotFound,
  directory_not_found: directoryNotFound,
  version_exists: versionExists,
  tree_changed: treeChanged,
  tree_too_large: (directory) => treeTooLarge(`MAX_TREE_FILES files below ${directory}/`),
  change_not_found: (id) => changeNotFound(Number(id)),
  revert_conflict: (_path, paths) =>
    revertConflict(paths.filter((path) => path !== '').slice(0, 10)),
  history_gone: historyGone,
}

function invalidTarget(path: string): Error {
  const fault = findPathFault(path)
  return fault?.code === 'reserved_path'
    ? reservedPath(fault.segment)
    : invalidPath(fault?.reason ?? 'it cannot be stored', path)
}
