// npm run backup -- <domain|static> <folder>, and restore: the command of that service, which says the rest.

const [command = '', service = '', ...rest] = process.argv.slice(2)
if (service !== 'domain' && service !== 'static') {
  process.stderr.write(`Usage: npm run ${command} -- <domain|static> <folder> [--verify]\n`)
  process.exit(2)
}
process.argv.splice(2, Infinity, command, ...rest)
await import(`../packages/${service}-service/src/maintenance/data-command.ts`)
