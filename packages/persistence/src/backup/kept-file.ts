/** A file that is never written again, by its path below the data folder. */
export interface KeptFile {
  file: string
  size: number
  sha256: string
}
