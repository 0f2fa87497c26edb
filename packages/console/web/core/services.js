/** @typedef {'domains' | 'files'} ServiceName */

/** The two services: how a person knows them, and where the browser reaches them. */
const titles = { domains: 'Domains', files: 'Files' }

/** @type {Map<ServiceName, string>} */
const urls = new Map()

/** What the server says of this page: what each view imports, and limits of uploads. */
export const config = {
  /** @type {Record<string, string[]>} */
  modules: {},
  upload_part_bytes: Infinity,
  max_upload_bytes: Infinity,
}

/** Reads /config.json. A service that is not configured is not offered. */
export async function loadServices() {
  const response = await fetch('config.json')
  if (!response.ok) throw new Error('The configuration of this page could not be loaded.')
  const { domain_service_url: domains, static_service_url: files, ...rest } = await response.json()
  Object.assign(config, rest)
  if (domains) urls.set('domains', domains)
  if (files) urls.set('files', files)
}

/** @returns {ServiceName[]} */
export const offeredServices = () => [...urls.keys()]

/** @param {ServiceName} service */
export const urlOf = (service) => urls.get(service) ?? ''

/** @param {ServiceName} service */
export const titleOf = (service) => titles[service]
