/** @typedef {'domains' | 'files'} ServiceName */

/** The two services: how a person knows them, and where the browser reaches them. */
const titles = { domains: 'Domains', files: 'Files' }

/** @type {Map<ServiceName, string>} */
const urls = new Map()

/** Reads /config.json. A service that is not configured is not offered. */
export async function loadServices() {
  const response = await fetch('config.json')
  if (!response.ok) throw new Error('The configuration of this page could not be loaded.')
  const config = await response.json()
  if (config.domain_service_url) urls.set('domains', config.domain_service_url)
  if (config.static_service_url) urls.set('files', config.static_service_url)
}

/** @returns {ServiceName[]} */
export const offeredServices = () => [...urls.keys()]

/** @param {ServiceName} service */
export const urlOf = (service) => urls.get(service) ?? ''

/** @param {ServiceName} service */
export const titleOf = (service) => titles[service]
