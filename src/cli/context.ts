/** Input and output of a command. main.ts builds it from the process; tests build their own. */
import { styleText } from 'node:util'
import type { Environment } from '../config/sources.ts'

export interface Terminal {
  write(text: string): void
  /** The output is a terminal, so a progress line may be redrawn. */
  readonly isTTY: boolean
  /** Whether to print colors. */
  readonly color: boolean
  readonly columns: number
}

export interface CliContext {
  readonly env: Environment
  readonly cwd: string
  /** Name of this program in messages, as the user started it: `script/errand`, `errand` or `npx errand`. */
  readonly command: string
  readonly out: Terminal
  readonly err: Terminal
  /** Reads all of stdin as text. */
  readStdin(): Promise<string>
  /** Calls the listener at every SIGINT and SIGTERM; `count` begins at 1. Returns a function that removes the listener. */
  onSignal(listener: (signal: NodeJS.Signals, count: number) => void): () => void
  /** Ends the process immediately. */
  exitNow(code: number): void
  /** For tests: called when a run reaches a crash point. */
  readonly onPoint?: (point: string) => void
}

/** Ends a command with a sentence for stderr and an exit code other than 0. */
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
  return terminal.color ? styleText(style, text, { validateStream: false }) : text
}

/**
 * Removes escape sequences, control characters and bidirectional overrides from text of models, tools and servers, so that
 * a run cannot move the cursor, change colors or imitate other output.
 */
export function printable(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b./g, '')
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, '')
}
