/** Runs a program inside the sandbox for a tool. A hostile file can harm only the sandbox. */
import { type Sandbox, SandboxError } from '../sandbox/port.ts'

export interface ProgramLimits {
  /** Maximum output. A program with more output fails. */
  readonly maxBytes: number
  readonly timeoutMs: number
  /** Stops the program. */
  readonly signal: AbortSignal
}

export type ProgramEnd =
  | { readonly ok: true; readonly output: Buffer }
  /** `missing`: the program does not exist. `stderr`: truncated. */
  | { readonly ok: false; readonly missing: boolean; readonly stderr: string }

const MAX_STDERR_CHARS = 300

/** Throws SandboxError `lost` if the sandbox was lost, and the signal's reason if the signal aborted. */
export async function runProgram(sandbox: Sandbox, argv: readonly string[], terms: ProgramLimits): Promise<ProgramEnd> {
  let stderr = ''
  // Before the program starts: nothing would read the program's stream if this threw.
  const stop = AbortSignal.any([terms.signal, AbortSignal.timeout(Math.max(1, Math.ceil(terms.timeoutMs)))])
  const program = sandbox.spawn({ argv, pipes: 'stdio' }, (text) => {
    stderr = (stderr + text).slice(0, 10 * MAX_STDERR_CHARS)
  })
  stop.addEventListener('abort', program.kill)
  if (stop.aborted) program.kill()
  try {
    program.stream.end()
    const output = await collect(program.stream, terms.maxBytes)
    if (output === undefined) program.kill()
    const end = await program.exited
    terms.signal.throwIfAborted()
    if (end.kind === 'lost') throw new SandboxError('lost', 'The sandbox was lost.')
    if (output && end.kind === 'exit' && end.code === 0) return { ok: true, output }
    const message = stop.aborted ? 'It took too long.' : stderr.trim().slice(0, MAX_STDERR_CHARS)
    return { ok: false, missing: end.kind === 'exit' && end.code === 127, stderr: message }
  } finally {
    stop.removeEventListener('abort', program.kill)
  }
}

/** Returns undefined if there are more than `maxBytes`. */
async function collect(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let total = 0
  try {
    for await (const chunk of stream) {
      total += chunk.length
      if (total > maxBytes) return undefined
      chunks.push(chunk)
    }
  } catch {
    return undefined // The program or its sandbox ended; `exited` has the reason.
  }
  return Buffer.concat(chunks)
}
