// `BENCH_ROUNDS=7 BENCH_SECONDS=5 npm run bench -- static-1k login`
export const settings = {
  /** Turns of each contender. */
  rounds: Number(process.env.BENCH_ROUNDS ?? 5),
  /** Seconds of load in each turn. */
  seconds: Number(process.env.BENCH_SECONDS ?? 3),
  /** The rows to measure; all when there are none. */
  rows: process.argv.slice(2),
}

/** The core of all servers, and that of the load generator. */
export const cores = { server: 0, load: 1 }
