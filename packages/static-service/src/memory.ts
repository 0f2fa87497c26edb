import { setFlagsFromString } from 'node:v8'

// The young generation stays small. Else it grows until 64 MB of chunks wait in it that were written long ago: an upload
// makes little other garbage. Measured with 256 MiB: the process grows by 22 MiB instead of 66, at the same speed.
setFlagsFromString('--semi-space-growth-factor=1')
