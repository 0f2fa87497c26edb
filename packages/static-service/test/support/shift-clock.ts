import { readFileSync } from 'node:fs'

// A preload for the service: its clock is wrong by the milliseconds that the file CLOCK_SHIFT holds at the moment.

const readShift = () => Number(readFileSync(process.env.CLOCK_SHIFT ?? '', 'utf8'))

globalThis.Date = new Proxy(Date, {
  construct: (RealDate, given) =>
    given.length === 0 ? new RealDate(RealDate.now() + readShift()) : Reflect.construct(RealDate, given),
  get: (RealDate, name) => (name === 'now' ? () => RealDate.now() + readShift() : Reflect.get(RealDate, name)),
})
