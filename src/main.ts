#!/usr/bin/env -S node --max-semi-space-size=16
/**
 * Entry point of the command line. Only this file reads arguments, the environment, standard streams and signals.
 *
 * The flag limits V8's young generation. By default it grows to 128 MiB, most of the memory of a busy server; this limit
 * costs next to nothing.
 *
 * Node 18 and later can load this file, so that it can name the version that Errand needs. Its static imports exist in
 * Node 18, newer functions are used through a default import, and everything else is imported after the check.
 */
import { fstatSync } from 'node:fs'
import nodeModule from 'node:module'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { CliContext, Terminal } from './cli/context.ts'

const OLDEST_NODE = 24

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  process.stderr.write(
    `Errand needs Node ${OLDEST_NODE} or newer; this is ${process.versions.node}. Install one from https://nodejs.org/.\n`,
  )
  process.exit(1)
}

// Without the cache, stripping types and compiling take two thirds of the start. Nothing is cached if the directory is not writable.
nodeModule.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/errand', import.meta.url)))
const { CommanderError } = await import('commander')
const { createProgram } = await import('./cli/program.ts')
const { Exit } = await import('./cli/context.ts')

/** Whether stdout and stderr are the same terminal, pipe or file. */
const sameOutput = isSameFile(1, 2)
let lineIsOpen = false
const ERASED_LINE = '\r\x1b[2K'

function isSameFile(a: number, b: number): boolean {
  try {
    const [one, other] = [fstatSync(a), fstatSync(b)]
    return one.dev === other.dev && one.ino === other.ino
  } catch {
    return false
  }
}

/** Begins stderr output on a new line, so that a log line is not appended to an unfinished line of the answer. */
function separated(stream: NodeJS.WriteStream, chunk: string): string {
  if (!sameOutput || chunk === '') return chunk
  const before = stream === process.stderr && lineIsOpen ? '\n' : ''
  lineIsOpen = !chunk.endsWith('\n') && !chunk.endsWith(ERASED_LINE)
  return before + chunk
}

function terminal(stream: NodeJS.WriteStream): Terminal {
  // The reader closed the pipe, as in `errand run … | head`.
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  const isTTY = stream.isTTY === true && process.env.TERM !== 'dumb'
  return {
    write: (chunk) => void stream.write(separated(stream, chunk)),
    isTTY,
    color: isTTY && !process.env.NO_COLOR,
    get columns() {
      return stream.columns || 80
    },
  }
}

function onSignal(listener: (signal: NodeJS.Signals, count: number) => void): () => void {
  let count = 0
  const onEach = (signal: NodeJS.Signals) => listener(signal, ++count)
  process.on('SIGINT', onEach).on('SIGTERM', onEach)
  return () => process.off('SIGINT', onEach).off('SIGTERM', onEach)
}

/** Name under which the user started this program. npx sets `npm_command` to `exec`. */
function commandName(npmCommand: string | undefined): string {
  if (import.meta.filename.endsWith('.ts')) return 'script/errand'
  return npmCommand === 'exec' ? 'npx errand' : 'errand'
}

/** For tests of recovery: kills this process when a run reaches the crash point `point[:n]` for the nth time. */
function crashAt(place: string | undefined): CliContext['onPoint'] {
  if (place === undefined) return undefined
  const [wanted, nth = 1] = place.split(':')
  let left = Number(nth)
  return (point) => {
    if (point === wanted && --left === 0) process.kill(process.pid, 'SIGKILL')
  }
}

const context: CliContext = {
  env: process.env,
  cwd: process.cwd(),
  command: commandName(process.env.npm_command),
  out: terminal(process.stdout),
  err: terminal(process.stderr),
  readStdin: () => text(process.stdin),
  onSignal,
  exitNow: (code) => process.exit(code),
  onPoint: crashAt(process.env.ERRAND_CRASH_AT),
}

try {
  await createProgram(context, (code) => {
    process.exitCode = code
  }).parseAsync()
} catch (error) {
  if (error instanceof Exit) {
    context.err.write(`${error.message}\n`)
    process.exitCode = error.code
  } else if (error instanceof CommanderError) {
    // Commander has printed its message. Help exits with 0.
    process.exitCode = error.exitCode === 0 ? 0 : 2
  } else {
    throw error
  }
}
