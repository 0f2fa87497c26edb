import { DataDirError, explainDatabaseFailure } from '@domains-and-files/persistence'

/** A service must not start until its configuration changes. The message is for the operator, in full sentences. */
export class StartRefusedError extends Error {}

/**
 * Ends the process with one sentence on standard error, if an operator can fix the cause: settings, the disk, a
 * database or the address. The status is 1; 78 if systemd started the process and a restart would fail again.
 * @throws every other error.
 */
export function exitOnStartFailure(error: unknown): never {
  const sentence = explain(error)
  if (!sentence) throw error
  process.stderr.write(`${sentence}\n`)
  process.exit(isStartedBySystemd() && error instanceof StartRefusedError ? exConfig : 1)
}

// EX_CONFIG of sysexits.h. The units name it in RestartPreventExitStatus.
const exConfig = 78

// systemd.exec(5): equal only in the process that systemd itself executed, not in its children.
const isStartedBySystemd = () => process.env.SYSTEMD_EXEC_PID === String(process.pid)

function explain(failure: unknown): string | undefined {
  const error = explainDatabaseFailure(failure)
  if (!(error instanceof Error)) return undefined
  if (error instanceof StartRefusedError || error instanceof DataDirError) return error.message
  return explainListen(error) ?? explainDatabase(error) ?? explainSystem(error)
}

type SystemError = Error & { code?: unknown; syscall?: unknown; address?: unknown; port?: unknown }

function explainListen({ code, syscall, address, port }: SystemError): string | undefined {
  if (syscall !== 'listen') return undefined
  const reason = {
    EADDRINUSE: `port ${port} on ${address} is in use: stop the program that uses it, or set PORT`,
    EACCES: `port ${port} needs privileges that this user lacks: set PORT to 1024 or higher`,
    EADDRNOTAVAIL: `${address} is no address of this machine: set HOST`,
  }[String(code)]
  return reason && `Cannot start: ${reason}.`
}

function explainDatabase({ code: name, message }: SystemError): string | undefined {
  const code = String(name)
  if (code === 'DATABASE_NEWER') return message
  if (/^SQLITE_(?:BUSY|LOCKED)/.test(code)) {
    return 'Cannot start: another process has locked the database in DATA_DIR: stop it first.'
  }
  if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(code)) {
    return `Cannot start: the database in DATA_DIR is damaged (${message}): restore it from a backup.`
  }
  if (/SQLITE_/.test(code)) return `Cannot start: cannot use the database in DATA_DIR: ${message}.`
  return undefined
}

// The message of such an error names the call and the path.
const explainSystem = ({ syscall, message }: SystemError) =>
  syscall ? `Cannot start: ${message}` : undefined
