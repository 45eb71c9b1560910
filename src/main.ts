#!/usr/bin/env -S node --max-semi-space-size=16
/**
 * The command line. Arguments, environment, streams and signals are read here and nowhere else.
 *
 * The flag: V8 would let its young generation grow to 128 MiB, which is most of what a busy server took; 32 cost next to nothing.
 */
import { enableCompileCache } from 'node:module'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Surroundings, Terminal } from './cli/surroundings.ts'

// Stripping types and compiling takes two thirds of a start. Where the directory can't be written, nothing is cached.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/errand', import.meta.url)))
const { CommanderError } = await import('commander')
const { createProgram } = await import('./cli/program.ts')
const { Exit } = await import('./cli/surroundings.ts')

function terminal(stream: NodeJS.WriteStream): Terminal {
  // Whoever reads us went away (`errand run … | head`): there is nothing left to say and nobody to say it to.
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  const isTTY = stream.isTTY === true && process.env.TERM !== 'dumb'
  return {
    write: (chunk) => void stream.write(chunk),
    isTTY,
    colour: isTTY && !process.env.NO_COLOR,
    get columns() {
      return stream.columns || 80
    },
  }
}

function onSignal(listener: (signal: NodeJS.Signals, count: number) => void): () => void {
  let count = 0
  const heard = (signal: NodeJS.Signals) => listener(signal, ++count)
  process.on('SIGINT', heard).on('SIGTERM', heard)
  return () => process.off('SIGINT', heard).off('SIGTERM', heard)
}

/** From source it is a checkout's; npx tells that it is npx. */
function commandName(npmCommand: string | undefined): string {
  if (import.meta.filename.endsWith('.ts')) return 'script/errand'
  return npmCommand === 'exec' ? 'npx errand' : 'errand'
}

/** For tests of recovery: ends this process as `kill -9` does where a run comes to `point[:n]` for the nth time. */
function crashAt(place: string | undefined): Surroundings['onPoint'] {
  if (place === undefined) return undefined
  const [wanted, nth = 1] = place.split(':')
  let left = Number(nth)
  return (point) => {
    if (point === wanted && --left === 0) process.kill(process.pid, 'SIGKILL')
  }
}

const around: Surroundings = {
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
  await createProgram(around, (code) => {
    process.exitCode = code
  }).parseAsync()
} catch (error) {
  if (error instanceof Exit) {
    around.err.write(`${error.message}\n`)
    process.exitCode = error.code
  } else if (error instanceof CommanderError) {
    // Its message is on stderr already; asking for help is no mistake.
    process.exitCode = error.exitCode === 0 ? 0 : 2
  } else {
    throw error
  }
}
