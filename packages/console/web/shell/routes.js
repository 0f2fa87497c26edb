/**
 * Which element shows which address. Views are loaded when they are first opened.
 * @import { Route } from '../core/router.js'
 * @import { ServiceName } from '../core/services.js'
 * @import { IconName } from '../ui/icons.js'
 * @typedef {{ name: string, title: string, icon: IconName, service: ServiceName | undefined, module: string,
 *   isAdminOnly: boolean }} Place `module`: without its ending, and the element has its name; the server finds it here,
 *   to preload what it imports
 */

/**
 * @param {string} name of the address
 * @param {string} title
 * @param {IconName} icon
 * @param {ServiceName | undefined} service
 * @param {string} module
 * @returns {Place}
 */
const place = (name, title, icon, service, module, isAdminOnly = false) => ({
  name,
  title,
  icon,
  service,
  module,
  isAdminOnly,
})

export const places = [
  place('domains', 'Domains', 'globe', 'domains', 'domains/domain-list'),
  place('changes', 'Changes', 'queue', 'domains', 'changes/change-queue'),
  place('registrar', 'Registrar', 'gauge', 'domains', 'registrar/registrar-view', true),
  place('files', 'Files', 'folder', 'files', 'files/file-browser'),
  place('file-changes', 'File changes', 'clock', 'files', 'files/history/file-change-list'),
  place('versions', 'Versions', 'tag', 'files', 'versions/version-list'),
  place('statistics', 'Statistics', 'chart', 'files', 'statistics/file-statistics'),
  place('events', 'Events', 'bell', undefined, 'events/event-list'),
  place('webhooks', 'Webhooks', 'link', undefined, 'webhooks/webhook-list', true),
  place('tokens', 'API tokens', 'key', undefined, 'tokens/token-list'),
  place('users', 'Users', 'person', undefined, 'users/user-list', true),
]

const zonePlace = place('domains', 'Domain', 'globe', 'domains', 'zone/zone-view')

/** The place of an address; undefined where there is none. @param {Route} route */
export function placeOf({ segments }) {
  if (segments[0] === 'domains' && segments[1]) return zonePlace
  return places.find(({ name }) => name === segments[0])
}
