import { join } from '../files/file-path.ts'

/** A directory that is served as a web site (STATIC_SITES): with an index, clean URLs and a page for missing paths. */
export interface SitePolicy {
  /** Without slashes at its ends; the root is empty. */
  directory: string
  /** File that answers for its directory. */
  index: string
  /** Content-Security-Policy of HTML, SVG and XML; undefined: none. */
  csp: string | undefined
}

export interface StaticPolicies {
  /** Longest directory first. */
  sites: readonly SitePolicy[]
  /** Outside of sites: file that answers for its directory; undefined: none. */
  index: string | undefined
  /** Outside of sites: Content-Security-Policy of HTML, SVG and XML; undefined: none. */
  csp: string | undefined
}

/** The innermost site that a path, of a file or of a directory, belongs to. */
export const siteOf = (path: string, { sites }: StaticPolicies): SitePolicy | undefined =>
  sites.find(
    ({ directory }) => directory === '' || path === directory || path.startsWith(`${directory}/`),
  )

export const cspOf = (path: string, policies: StaticPolicies): string | undefined => {
  const site = siteOf(path, policies)
  return site ? site.csp : policies.csp
}

/** The name of the file that answers for this directory. */
export const indexOf = (directory: string, policies: StaticPolicies): string | undefined => {
  const site = siteOf(directory, policies)
  return site ? site.index : policies.index
}

/** The file that answers where there is none at the path: `guide.html` for `guide` in a site. */
export const cleanUrlTarget = (path: string, policies: StaticPolicies): string | undefined =>
  siteOf(path, policies) && `${path}.html`

/** The page of a site for missing paths. */
export const notFoundPage = (path: string, policies: StaticPolicies): string | undefined => {
  const site = siteOf(path, policies)
  return site && join(site.directory, '404.html')
}
