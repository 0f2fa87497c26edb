import { kinds, standBefore } from './fronts.ts'

// Puts a proxy in front of the static service under test (STATIC_FRONT names this file). FRONT chooses the proxy, which
// sends every file that it may. With FRONT_IS_BLIND it finds none of them, as if each had been deleted between the
// service's response and the proxy's open().

const kind = kinds.find((each) => each === process.env.FRONT)
if (!kind) throw new Error(`FRONT must be one of ${kinds}`)

export const front = {
  env: { TRUST_PROXY: '127.0.0.1', STATIC_OFFLOAD: kind, STATIC_OFFLOAD_BYTES: '0' },
  standBefore: (staticPort: number, folder: string) => {
    const dataDir = process.env.FRONT_IS_BLIND ? `${folder}/nothing` : folder
    return standBefore(kind, { domainPort: staticPort, staticPort, dataDir, isPlain: true })
  },
}
