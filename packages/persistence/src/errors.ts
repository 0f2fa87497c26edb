/** A data directory or backup cannot be used as requested. The message is for the operator, in full sentences. */
export class DataDirError extends Error {}
