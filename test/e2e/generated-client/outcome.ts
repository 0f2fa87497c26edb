/** Where a generated client finds both services. */
export interface Target {
  domains: Service
  files: Service
}

interface Service {
  url: string
  credentials: { username: string; password: string }
}

/** What a generated client has done. */
export interface Outcome {
  /** The record that it added, as read by its id. */
  record: { name: string; type: string }
  /** Path of the file that it uploaded. */
  uploaded: string
  /** Paths listed in the directory of that file. */
  listed: string[]
}
