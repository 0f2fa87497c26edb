// A worker of vitest whose run is killed ends, and with it the programs that its tests have spawned with a pipe as standard
// input: otherwise services would wait for requests for ever. SIGKILL, because tests may handle other signals.
if (!process.listeners('disconnect').some(({ name }) => name === exit.name)) process.on('disconnect', exit)

function exit() {
  process.kill(process.pid, 'SIGKILL')
}
