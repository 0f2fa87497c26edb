/**
 * Which element shows which address. Views are loaded when they are first opened.
 * @import { Route } from '../core/router.js'
 * @import { ServiceName } from '../core/services.js'
 * @import { IconName } from '../ui/icons.js'
 * @typedef {{ name: string, title: string, icon: IconName, service: ServiceName | undefined, tag: string,
 *   load: () => Promise<unknown>, isAdminOnly?: boolean }} Place
 */

/** @type {Place[]} */
export const places = [
  {
    name: 'domains',
    title: 'Domains',
    icon: 'globe',
    service: 'domains',
    tag: 'domain-list',
    load: () => import('../domains/domain-list.js'),
  },
  {
    name: 'changes',
    title: 'Changes',
    icon: 'queue',
    service: 'domains',
    tag: 'change-queue',
    load: () => import('../changes/change-queue.js'),
  },
  {
    name: 'registrar',
    title: 'Registrar',
    icon: 'gauge',
    service: 'domains',
    tag: 'registrar-view',
    load: () => import('../registrar/registrar-view.js'),
    isAdminOnly: true,
  },
  {
    name: 'files',
    title: 'Files',
    icon: 'folder',
    service: 'files',
    tag: 'file-browser',
    load: () => import('../files/file-browser.js'),
  },
  {
    name: 'file-changes',
    title: 'File changes',
    icon: 'clock',
    service: 'files',
    tag: 'file-change-list',
    load: () => import('../files/history/file-change-list.js'),
  },
  {
    name: 'versions',
    title: 'Versions',
    icon: 'tag',
    service: 'files',
    tag: 'version-list',
    load: () => import('../versions/version-list.js'),
  },
  {
    name: 'statistics',
    title: 'Statistics',
    icon: 'chart',
    service: 'files',
    tag: 'file-statistics',
    load: () => import('../statistics/file-statistics.js'),
  },
  {
    name: 'tokens',
    title: 'API tokens',
    icon: 'key',
    service: undefined,
    tag: 'token-list',
    load: () => import('../tokens/token-list.js'),
  },
  {
    name: 'users',
    title: 'Users',
    icon: 'person',
    service: undefined,
    tag: 'user-list',
    load: () => import('../users/user-list.js'),
    isAdminOnly: true,
  },
]

/** @type {Place} */
const zonePlace = {
  name: 'domains',
  title: 'Domain',
  icon: 'globe',
  service: 'domains',
  tag: 'zone-view',
  load: () => import('../zone/zone-view.js'),
}

/** The place of an address; undefined where there is none. @param {Route} route */
export function placeOf({ segments }) {
  if (segments[0] === 'domains' && segments[1]) return zonePlace
  return places.find(({ name }) => name === segments[0])
}
