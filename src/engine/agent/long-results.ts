/** Writes long results of tools that run outside the sandbox to a file in it, without the run's secrets. */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { type FullResult, LONG_RESULT_BYTES } from '../../domain/long-result.ts'
import { resultPath } from '../../sandbox/inside.ts'
import { type Sandbox, SandboxError } from '../../sandbox/port.ts'
import type { Tool, ToolOutcome } from '../../tools/port.ts'
import { truncateMiddle } from '../../tools/truncate.ts'
import type { Run } from '../run/run.ts'

/** The text of a result in the log, and the file with all of it. */
export interface RecordedText {
  readonly output: string
  readonly full?: FullResult
}

/** Tools that can read the file. */
const READERS = ['code_execution', 'file_read']
/** UTF-16 units that are searched for secrets before other work may run. */
const SLICE_CHARS = 128 * 1024

/**
 * The result as it is recorded: redacted, at most `outputBytes` long. The whole text of a long result is written to a file if the
 * run has a tool that can read it. Without a sandbox there is no file. `key`: of the call.
 */
export async function recordedText(
  run: Run,
  tools: ReadonlyMap<string, Tool>,
  { output, full }: Pick<ToolOutcome, 'output' | 'full'>,
  { name, key }: { readonly name: string; readonly key: string },
): Promise<RecordedText> {
  const whole = await redacted(run, output)
  if (full) return { output: whole, full }
  if (!tools.get(name)?.external) return { output: whole }
  const bytes = Buffer.byteLength(whole)
  const readable = READERS.some((reader) => tools.has(reader))
  const path = readable && bytes > LONG_RESULT_BYTES ? await saved(run, key, whole) : undefined
  const shown = truncateMiddle(whole, run.spec.policy.sandbox.outputBytes).text
  return { output: shown, ...(path !== undefined && { full: { path, bytes } }) }
}

async function redacted({ redactor }: Run, text: string): Promise<string> {
  if (text.length <= SLICE_CHARS) return redactor.redact(text)
  const parts: string[] = []
  const stream = redactor.stream((part) => parts.push(part))
  for (let at = 0; at < text.length; at += SLICE_CHARS) {
    stream.write(text.slice(at, at + SLICE_CHARS))
    await yieldToOthers()
  }
  stream.end()
  return parts.join('')
}

/** Returns the path of the file. Undefined if there is no sandbox, or no space in it. */
async function saved({ claim, spec, workspace }: Run, key: string, text: string): Promise<string | undefined> {
  const path = resultPath(claim.id, key)
  let sandbox: Sandbox | undefined
  try {
    sandbox = await workspace.open(spec.inputFiles)
    await sandbox.writeFile(path, Buffer.from(text), 'write')
    return path
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    if (error.code === 'lost') workspace.forget(sandbox)
    return undefined
  }
}
