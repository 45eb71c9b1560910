/** The `job` tool: waits for, writes to, ends and lists the background jobs that code_execution has started. */
import { z } from 'zod'
import { LONG_RESULT_BYTES } from '../domain/long-result.ts'
import { withoutEnd } from '../domain/trim.ts'
import type { JobRefusal, JobReport, JobState, Language } from '../sandbox/port.ts'
import { toolArguments } from './arguments.ts'
import type { Tool, ToolContext, ToolOutcome } from './port.ts'

/** Seconds that a call waits unless it says how long. */
const DEFAULT_WAIT_S = 10
/** Time for a new job to fail, or to say that it is ready. */
const START_WAIT_MS = 1_000
/** Time for the processes of a job that is ended. */
const KILL_WAIT_MS = 5_000
const MAX_INPUT = 60_000
/** Maximum size of an argument of a program in Linux is 128 KiB. */
export const MAX_JOB_CODE = 100_000

const ARGUMENTS = toolArguments(
  'job',
  z.object({
    id: z
      .string('must be a string')
      .min(1, 'must not be empty')
      .max(100, 'must be at most 100 characters')
      .optional()
      .describe('The id of the job. Without it, all jobs are listed.'),
    waitSeconds: z
      .number('must be a number')
      .min(0, 'must be 0 or more')
      .optional()
      .describe(`How long to wait for new output or the end. Default: ${DEFAULT_WAIT_S}.`),
    input: z
      .string('must be a string')
      .max(MAX_INPUT, `must be at most ${MAX_INPUT} characters`)
      .optional()
      .describe('A line to send to stdin, without its line break.'),
    kill: z.boolean('must be true or false').optional().describe('true ends the job with all its processes.'),
  }),
)

const DESCRIPTION = `Looks at a background job that code_execution has started with background: returns its output since the last look, whether it runs, and its exit code. Returns when the job has ended, or has printed something and then paused, or after waitSeconds.
With input, sends a line to the job's stdin first; with kill, ends the job. Without id, lists the jobs. Jobs end with the run.`

export function createJob(): Tool {
  return {
    definition: { name: 'job', description: DESCRIPTION, parameters: ARGUMENTS.parameters },
    keyed: true,
    lane: ({ id }) => (id === undefined ? 'shared' : `session:${id}`),
    async run(args, context) {
      const checked = ARGUMENTS.check(args)
      if (!checked.ok) return { output: checked.message }
      const { id, waitSeconds = DEFAULT_WAIT_S, input, kill } = checked.value
      if (kill && input !== undefined) return { output: 'job did nothing: use either `input` or `kill`.' }
      const sandbox = await context.sandbox()
      if (id === undefined) return { output: describeJobs(await sandbox.jobs()) }
      const waitMs = kill ? KILL_WAIT_MS : Math.min(waitSeconds * 1_000, context.remainingMs())
      const line = input === undefined ? undefined : { input: `${withoutEnd(input, '\n')}\n` }
      const request = { key: context.key, job: id, ...line, ...(kill && { kill }), waitMs }
      const report = await sandbox.job(request, context.signal)
      return 'refused' in report ? { output: REFUSALS[report.refused](id) } : describeReport(report, context)
    },
  }
}

/** The id of the job that a call starts. It is not used again, also in the next sandbox of the run. */
function jobOf(key: string): string {
  return `job-${key.replace(/^step-/, '')}`
}

export async function startJob(
  context: ToolContext,
  start: { readonly language: Language; readonly code: string; readonly timeoutMs?: number },
): Promise<ToolOutcome> {
  const sandbox = await context.sandbox()
  const job = jobOf(context.key)
  const waitMs = Math.min(START_WAIT_MS, context.remainingMs())
  const report = await sandbox.job({ key: context.key, job, start, waitMs }, context.signal)
  return 'refused' in report ? { output: REFUSALS[report.refused](job) } : describeReport(report, context)
}

/** The new output, then a line in brackets about the job. */
function describeReport({ state, output, from, to, path }: JobReport, { outputBytes }: ToolContext): ToolOutcome {
  const text = withoutEnd(output, '\n')
  const { saved } = state
  const notes = [
    ...(text === '' ? [from === 0 ? 'It has printed nothing.' : 'It has printed nothing new.'] : []),
    ...(saved.cut
      ? [`Its output was longer than the file may be, which has the first ${count(saved.bytes)} bytes.`]
      : []),
    `${state.id} ${describeState(state)}.`,
  ]
  const long = to - from > Math.min(LONG_RESULT_BYTES, outputBytes) && saved.bytes > 0
  return {
    output: [...(text === '' ? [] : [text]), ...notes.map((note) => `[${note}]`)].join('\n'),
    ...(long && { full: { path, bytes: saved.bytes } }),
  }
}

function describeState({ end, ms }: JobState): string {
  const time = `${(ms / 1_000).toFixed(1)} s`
  if (!end) return `is running, for ${time}`
  if (end.kind === 'exit') return `ended with exit code ${end.code} after ${time}`
  if (end.kind === 'timeout') return `was ended after ${time}, its time limit`
  if (end.kind === 'cancelled') return `was killed after ${time}`
  if (end.kind === 'signal')
    return `was ended by ${end.signal} after ${time}${end.signal === 'SIGKILL' ? ': its memory may have been used up' : ''}`
  return `ended after ${time}`
}

function describeJobs(jobs: readonly JobState[]): string {
  if (jobs.length === 0) return 'There are no jobs. code_execution starts one with background: true.'
  return jobs
    .map((job) => `${job.id} (${job.language}) ${describeState(job)}; ${count(job.bytes)} bytes of output`)
    .join('\n')
}

const REFUSALS: Readonly<Record<JobRefusal, (id: string) => string>> = {
  unknown: (id) =>
    `There is no job ${JSON.stringify(id)}. It never started, or its sandbox is gone. Call job without id to list the jobs.`,
  too_many: () => 'The job was not started: eight are running. Wait for one, or end one with kill.',
  not_started: () => 'The job was not started: no more processes can be made. End some first.',
  unread: (id) => `The input was not sent: ${id} has not read what it got before.`,
  closed: (id) => `The input was not sent: ${id} has ended or has closed its input.`,
}

function count(bytes: number): string {
  return bytes.toLocaleString('en')
}
