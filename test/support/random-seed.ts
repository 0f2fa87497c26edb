import fc from 'fast-check'

// A property is tried with the same values in every run, so that a failure repeats. `npm run faults` takes others.
fc.configureGlobal({ seed: Number(process.env.RANDOM_SEED ?? 1) })
