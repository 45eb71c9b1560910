/** A progress line that says what the program waits for and for how long. Prints nothing unless the output is a terminal. */
import { paint, type Terminal } from './context.ts'

export interface Progress {
  /** Begins a new wait at 0 s. The line appears after a short delay. */
  start(what: string): void
  /** Changes the text of the current wait. */
  say(what: string): void
  /** Erases the line, so that other text can be written. The wait continues, and the line returns. */
  pause(): void
  stop(): void
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const TICK_MS = 100
const NOTICED_MS = 250

export function createProgress(terminal: Terminal): Progress {
  let what = ''
  let since = 0
  let quietUntil = 0
  let drawn = false
  let timer: NodeJS.Timeout | undefined

  function draw(): void {
    const now = Date.now()
    if (now < quietUntil) return
    const frame = FRAMES[Math.floor(now / TICK_MS) % FRAMES.length]!
    const text = `  ${frame} ${what} ${((now - since) / 1000).toFixed(1)} s`
    terminal.write(`\r\x1b[2K${paint(terminal, 'dim', text.slice(0, terminal.columns - 1))}`)
    drawn = true
  }

  function clear(): void {
    if (drawn) terminal.write('\r\x1b[2K')
    drawn = false
    quietUntil = Date.now() + NOTICED_MS
  }

  function halt(): void {
    clearInterval(timer)
    timer = undefined
    clear()
  }

  return {
    start(words) {
      if (!terminal.isTTY) return
      what = words
      since = Date.now()
      timer ??= setInterval(draw, TICK_MS).unref()
    },
    say(words) {
      what = words
    },
    pause: clear,
    stop: halt,
  }
}
