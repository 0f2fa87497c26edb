// Separate from file-path.ts: worker threads use these without loading the HTTP package.

/** The last segment of a path. */
export const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)

/** The directory that holds a path; the root is empty. */
export const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('/')))
