/** Validates what a runner reports about jobs, and the parts that steps have in common with them. */
import { type ExecEnd, JOB_REFUSALS, type JobState, LANGUAGES, type Language } from '../port.ts'
import type { Done, RunnerRequestBody } from '../protocol.ts'

/** Number of jobs that a runner may list: those that run, and those that it remembers. */
const MAX_JOBS = 40

/** Throws an Error if the answer is not valid. */
export function checkJobDone({ job, saveBytes }: RunnerRequestBody & { op: 'job' }, done: Done): void {
  const { from = -1, to = -1, jobs, refused } = done
  if (refused !== undefined) {
    if (refused !== 'left' && !JOB_REFUSALS.includes(refused)) throw new Error('invalid refusal')
  } else if (job === undefined) {
    const listed = Array.isArray(jobs) && jobs.length <= MAX_JOBS && jobs.every((state) => isJob(state, saveBytes))
    if (!listed) throw new Error('invalid list of jobs')
  } else {
    const range = isCount(from) && isCount(to) && from <= to
    if (!range || !isJob(done.job, saveBytes) || done.job.id !== job) throw new Error('invalid state of a job')
  }
}

function isJob(job: unknown, saveBytes: number): job is JobState {
  const { id, language, end, ms, bytes, saved } = (job ?? {}) as Record<string, unknown>
  const named = typeof id === 'string' && /^[\w-]{1,100}$/.test(id) && LANGUAGES.includes(language as Language)
  return named && isCount(ms) && isCount(bytes) && isSaved(saved, saveBytes) && (end === undefined || isEnd(end))
}

export function isSaved(saved: unknown, most: number): boolean {
  const { bytes, cut } = (saved ?? {}) as Record<string, unknown>
  return isCount(bytes) && bytes <= most && typeof cut === 'boolean'
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Ends that a runner can see. Only the host can report the others. */
export function isEnd(end: unknown): end is ExecEnd {
  const { kind, code, signal, afterMs } = (end ?? {}) as Record<string, unknown>
  if (kind === 'exit') return Number.isSafeInteger(code)
  if (kind === 'signal') return typeof signal === 'string' && /^[A-Z0-9+]{1,20}$/.test(signal)
  if (kind === 'timeout') return Number.isSafeInteger(afterMs)
  return kind === 'cancelled'
}
