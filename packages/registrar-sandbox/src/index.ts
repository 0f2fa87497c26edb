export type { DomainSketch } from './account/domain.ts'
export type { Fault, FaultInput } from './server/faults.ts'
export type { Call } from './server/registrar.ts'
export { type Sandbox, startSandbox } from './server/server.ts'
