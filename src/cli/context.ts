/** What a command gets from the world. Only main.ts makes one from the process; tests and other callers may make theirs. */
import { styleText } from 'node:util'
import type { Environment } from '../config/sources.ts'

export interface Terminal {
  write(text: string): void
  /** A person watches: progress may move. */
  readonly isTTY: boolean
  /** Colours are wanted. */
  readonly colour: boolean
  readonly columns: number
}

export interface CliContext {
  readonly env: Environment
  readonly cwd: string
  /** How a person calls this program: `script/errand`, or as what it was installed. Stands in messages that say what to do. */
  readonly command: string
  readonly out: Terminal
  readonly err: Terminal
  /** All of stdin as text. */
  readStdin(): Promise<string>
  /** Calls back at every SIGINT and SIGTERM, counted from 1; gives the function that stops it. */
  onSignal(listener: (signal: NodeJS.Signals, count: number) => void): () => void
  /** Ends the process now, whatever runs. */
  exitNow(code: number): void
  /** For tests: told where a run comes to. */
  readonly onPoint?: (point: string) => void
}

/** A command's end that is not a success: a sentence for stderr and an exit code. */
export class Exit extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'Exit'
    this.code = code
  }
}

type Style = Parameters<typeof styleText>[0]

export function paint(terminal: Terminal, style: Style, text: string): string {
  return terminal.colour ? styleText(style, text, { validateStream: false }) : text
}

/**
 * Text from models, tools and servers without what would move the cursor, recolour the screen or reverse the line:
 * nothing that a run prints may pretend to be the terminal's own.
 */
export function printable(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b./g, '')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, '')
}
