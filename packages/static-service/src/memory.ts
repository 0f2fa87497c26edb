import { setFlagsFromString } from 'node:v8'

// Keeps the young generation at 1 MiB. Otherwise it grows until 64 MiB of written upload chunks wait for collection.
// Measured with an upload of 256 MiB: the process grows by 22 MiB instead of 66, at the same speed.
setFlagsFromString('--semi-space-growth-factor=1')
