/**
 * Whether an answer fits `responseFormat`, found out in a thread of its own with a bound on its time and memory: a schema
 * is a stranger's program (a pattern that backtracks without end, alternatives of alternatives), and everybody's requests
 * are served here.
 */
import { Worker } from 'node:worker_threads'
import type { JsonSchema } from '../domain/interaction.ts'
import type { Said } from './answer-thread.ts'

const CHECK_MS = 5_000
const MEMORY_MIB = 256

const UNCHECKED = `it could not be held against the schema within ${CHECK_MS / 1_000} s and ${MEMORY_MIB} MiB`

/** What is wrong with the answer, for the model to mend; undefined where nothing is. Rejects with the signal's reason. */
export async function checkAnswer(
  schema: JsonSchema | undefined,
  answer: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!schema) return undefined
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const thread = new Worker(new URL(`./answer-thread.${extension}`, import.meta.url), {
    workerData: { schema, answer },
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    env: {},
  })
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
  const leave = () => reject(signal.reason)
  let timer: NodeJS.Timeout | undefined
  thread.on('message', (said: Said) => {
    if (said !== 'ready') resolve(said.fault)
    else timer = setTimeout(() => resolve(UNCHECKED), CHECK_MS)
  })
  thread.on('error', () => resolve(UNCHECKED))
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', leave)
    await thread.terminate()
  }
}
