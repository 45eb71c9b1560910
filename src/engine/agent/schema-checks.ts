/**
 * Work on schemas of callers (`responseFormat`): whether one compiles, whether an answer fits it. A schema is a stranger's
 * program (references of references, a pattern that backtracks without end), so each job has a thread of its own, with
 * bounds on time and memory. Few threads run at once, and a project never has all of them.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { ErrandError } from '../../domain/errors.ts'
import type { JsonSchema } from '../../domain/interaction.ts'
import type { Job, Reply } from './schema-thread.ts'

const THREADS = 2
const THREADS_PER_PROJECT = 1
/** Schemas of one project that wait to be compiled. */
const MAX_WAITING = 16
/** Processor time: on a busy machine, a good schema must not be refused. */
const CHECK_MS = 5_000
/** The same on the clock, for a machine that has no time at all. */
const MAX_MS = 60_000
const LOOK_MS = 100
const MEMORY_MIB = 256
/** Digests of schemas that compiled: most callers send the same one again. */
const MAX_KNOWN = 1_000
/** What the compiler says may quote the whole schema. */
const MAX_FAULT_CHARS = 300

const BOUNDS = `within ${CHECK_MS / 1_000} s and ${MEMORY_MIB} MiB`

export interface SchemaChecks {
  /** Resolves when the schema is known to compile. Throws ErrandError `invalid_request`; `unavailable` where too many wait. */
  admit(projectId: string, schema: JsonSchema | undefined): Promise<void>
  /**
   * What is wrong with an answer, for the model to correct; undefined where nothing is. Throws the signal's reason where
   * that aborts.
   */
  faultOf(
    projectId: string,
    schema: JsonSchema | undefined,
    answer: string,
    signal: AbortSignal,
  ): Promise<string | undefined>
}

/** Outside the bounds of its thread. */
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
      return found === UNFINISHED ? `it could not be held against the schema ${BOUNDS}` : found
    },
  }
}

function unusable(fault: string): ErrandError {
  const param = 'responseFormat'
  const message = `\`${param}\` is not a usable JSON Schema: ${fault.slice(0, MAX_FAULT_CHARS)}.`
  return new ErrandError('invalid_request', message, { param, details: [{ param, message }] })
}

/** One job. Throws the signal's reason where that aborts. */
async function runThread(job: Job, signal?: AbortSignal): Promise<Found> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const thread = new Worker(new URL(`./schema-thread.${extension}`, import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    env: {},
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

/** Milliseconds of processor time that a thread has taken since now; not a number once it has ended. */
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
  /** Runs `job` when the project's turn has come. Throws the signal's reason where that aborts meanwhile. */
  use<T>(projectId: string, job: () => Promise<T>, signal?: AbortSignal): Promise<T>
}

/** Turns go round the projects that wait. */
function createSlots(): Slots {
  /** Waiting jobs by project, the project whose turn is next first. */
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
