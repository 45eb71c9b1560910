/**
 * Checks callers' schemas (`responseFormat`): whether one compiles, and whether an answer matches it. A schema is untrusted
 * code (nested references, patterns with catastrophic backtracking), so each job runs in a thread of its own, with bounds on
 * time and memory. Few threads run at once, and one project can never use all of them.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { ErrandError } from '../../domain/errors.ts'
import type { JsonSchema } from '../../domain/interaction.ts'
import { compileCacheEnv } from '../../runtime/compile-cache.ts'
import type { Job, Reply } from './schema-thread.ts'

const THREADS = 2
const THREADS_PER_PROJECT = 1
/** Maximum number of waiting schemas of one project. */
const MAX_WAITING = 16
/** Bound on processor time. On a busy machine, wall time would refuse valid schemas. */
const CHECK_MS = 5_000
/** Bound on wall time, for an overloaded machine. */
const MAX_MS = 60_000
const LOOK_MS = 100
const MEMORY_MIB = 256
/** Number of cached digests of valid schemas. Most callers send the same schema again. */
const MAX_KNOWN = 1_000
/** Maximum length of a compiler error in a message. It may quote the whole schema. */
const MAX_FAULT_CHARS = 300

const BOUNDS = `within ${CHECK_MS / 1_000} s and ${MEMORY_MIB} MiB`

export interface SchemaChecks {
  /** Resolves if the schema compiles. Throws ErrandError `invalid_request`, or `unavailable` if too many checks wait. */
  admit(projectId: string, schema: JsonSchema | undefined): Promise<void>
  /**
   * Returns the error in an answer, for the model to correct; undefined if it is valid. Rejects with the signal's reason.
   */
  faultOf(
    projectId: string,
    schema: JsonSchema | undefined,
    answer: string,
    signal: AbortSignal,
  ): Promise<string | undefined>
}

/** A job that exceeded its bounds. */
const UNFINISHED = Symbol('unfinished')
type Found = string | undefined | typeof UNFINISHED

export function createSchemaChecks(): SchemaChecks {
  const slots = createSlots()
  const known = new Set<string>()

  return {
    async admit(projectId, schema) {
      if (!schema) return
      const digest = createHash('sha256').update(JSON.stringify(schema)).digest('base64')
      if (known.has(digest)) return
      if (slots.waiting(projectId) >= MAX_WAITING) {
        const message = `This project has ${MAX_WAITING} requests whose responseFormat is waiting to be checked. Try again.`
        throw new ErrandError('unavailable', message)
      }
      const found = await slots.use(projectId, () => runThread({ schema }))
      if (found !== undefined) throw unusable(found === UNFINISHED ? `it could not be compiled ${BOUNDS}` : found)
      if (known.size === MAX_KNOWN) known.delete(known.values().next().value!)
      known.add(digest)
    },
    async faultOf(projectId, schema, answer, signal) {
      if (!schema) return undefined
      const found = await slots.use(projectId, () => runThread({ schema, answer }, signal), signal)
      return found === UNFINISHED ? `it could not be checked against the schema ${BOUNDS}` : found
    },
  }
}

function unusable(fault: string): ErrandError {
  const param = 'responseFormat'
  const message = `\`${param}\` is not a usable JSON Schema: ${fault.slice(0, MAX_FAULT_CHARS)}.`
  return new ErrandError('invalid_request', message, { param, details: [{ param, message }] })
}

/** Runs one job in a thread. Rejects with the signal's reason. */
async function runThread(job: Job, signal?: AbortSignal): Promise<Found> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const thread = new Worker(new URL(`./schema-thread.${extension}`, import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    env: compileCacheEnv(),
  })
  const { promise, resolve, reject } = Promise.withResolvers<Found>()
  const leave = () => reject(signal!.reason)
  let timer: NodeJS.Timeout | undefined
  thread.on('message', (reply: Reply) => {
    if ('fault' in reply) return resolve(reply.fault)
    const spent = processorTime(reply.task)
    const until = performance.now() + MAX_MS
    const look = () => spent() > CHECK_MS || performance.now() > until
    timer = setInterval(() => look() && resolve(UNFINISHED), LOOK_MS)
  })
  thread.on('error', () => resolve(UNFINISHED))
  thread.on('exit', () => resolve(UNFINISHED))
  signal?.addEventListener('abort', leave)
  if (signal?.aborted) leave()
  try {
    return await promise
  } finally {
    clearInterval(timer)
    signal?.removeEventListener('abort', leave)
    await thread.terminate()
  }
}

/** Returns a function for a thread's processor time since now, in milliseconds. NaN once the thread has ended. */
function processorTime(task: string): () => number {
  const read = () => {
    try {
      return Number(readFileSync(`/proc/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e6
    } catch {
      return Number.NaN
    }
  }
  const before = read()
  return () => read() - before
}

interface Slots {
  waiting(projectId: string): number
  /** Runs `job` when it is the project's turn. Rejects with the signal's reason if it aborts first. */
  use<T>(projectId: string, job: () => Promise<T>, signal?: AbortSignal): Promise<T>
}

/** Projects take turns (round robin). */
function createSlots(): Slots {
  /** Waiting jobs by project; the next project comes first. */
  const queues = new Map<string, (() => void)[]>()
  const running = new Map<string, number>()
  let total = 0

  function startNext(): void {
    for (const [projectId, queue] of queues) {
      if (total === THREADS) return
      if ((running.get(projectId) ?? 0) >= THREADS_PER_PROJECT) continue
      const start = queue.shift()!
      queues.delete(projectId)
      if (queue.length > 0) queues.set(projectId, queue)
      count(projectId, 1)
      start()
    }
  }

  function count(projectId: string, change: 1 | -1): void {
    total += change
    const now = (running.get(projectId) ?? 0) + change
    if (now === 0) running.delete(projectId)
    else running.set(projectId, now)
  }

  function turn(projectId: string, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const queue = queues.get(projectId) ?? []
    queues.set(projectId, queue)
    queue.push(resolve)
    const leave = () => {
      const at = queue.indexOf(resolve)
      if (at < 0) return
      queue.splice(at, 1)
      if (queue.length === 0) queues.delete(projectId)
      reject(signal!.reason)
    }
    signal?.addEventListener('abort', leave)
    startNext()
    return promise.finally(() => signal?.removeEventListener('abort', leave))
  }

  return {
    waiting: (projectId) => queues.get(projectId)?.length ?? 0,
    async use(projectId, job, signal) {
      signal?.throwIfAborted()
      await turn(projectId, signal)
      try {
        return await job()
      } finally {
        count(projectId, -1)
        startNext()
      }
    },
  }
}
