/** The log, on stderr: short lines on a terminal, else JSON lines. */
import pino, { type Logger } from 'pino'
import type { Config } from '../config.ts'
import { logFields } from '../telemetry/log.ts'
import { paint, printable, type Terminal } from './context.ts'

export function createLog(level: Config['log'], terminal: Terminal): Logger {
  const write = terminal.isTTY ? (line: string) => terminal.write(shortLine(line, terminal)) : terminal.write
  const log: Logger = pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: errorFields },
      // The logger of a request has these fields already.
      mixin: (_fields, _level, writer) => (writer === log ? logFields() : {}),
    },
    { write },
  )
  return log
}

/** Logs only the known fields of an error: libraries attach requests to theirs, with all headers. */
function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name: type, message, stack, cause } = error
  const { code } = error as { code?: unknown }
  return {
    type,
    message,
    ...(code !== undefined && { code }),
    stack,
    ...(cause !== undefined && { cause: errorFields(cause) }),
  }
}

/** Log level of commands that print output of their own: warnings and errors, or everything with `debug`. */
export function quieter(level: Config['log']): Config['log'] {
  return level === 'info' ? 'warn' : level
}

const STYLES: Readonly<Record<number, 'gray' | 'yellow' | 'red'>> = { 20: 'gray', 40: 'yellow', 50: 'red', 60: 'red' }

function shortLine(line: string, terminal: Terminal): string {
  const { level, time, msg, err, ...rest } = JSON.parse(line) as Record<string, unknown>
  const label = pino.levels.labels[level as number] ?? ''
  const style = STYLES[level as number]
  const fields = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const cause = (err as { message?: string } | undefined)?.message
  const text = [msg, cause, ...fields].filter(Boolean).join('  ')
  const shown = printable(`${String(time).slice(11, 19)} ${label.padEnd(5)} ${text}`).replaceAll('\n', ' ')
  return `${style ? paint(terminal, style, shown) : shown}\n`
}
