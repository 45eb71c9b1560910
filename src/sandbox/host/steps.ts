/**
 * The steps of one sandbox by key: a key asked again joins the step that runs, or gets the first result; nothing runs
 * twice. The end of a step is told here, since only the host sees why the kernel killed a process.
 */
import { type ExecEnd, SandboxError, type SandboxLimits } from '../port.ts'
import type { ExecDone, ReplyBody, RunnerRequestBody } from '../protocol.ts'
import { judgeEnd, limitHits } from './limit-hits.ts'
import type { Runner } from './runner.ts'

export type Listener = (reply: ReplyBody, payload?: Uint8Array) => void

export interface StepRequest {
  readonly key: string
  readonly language: 'python' | 'javascript' | 'bash'
  readonly timeoutMs: number
  readonly outputBytes: number
}

export interface Steps {
  /** What is returned takes the listener away and, if told to, ends the step. */
  run(request: StepRequest, code: Uint8Array, listener: Listener): { kill(): void; leave(): void }
}

interface Step {
  readonly listeners: Set<Listener>
  output: Buffer[]
  done: ExecDone | undefined
  kill(): void
}

/** Output of finished steps kept for asking again, bytes; beyond, the oldest is forgotten, its end never. */
const KEPT_BYTES = 4 * 1024 * 1024
const FORGOTTEN = Buffer.from('[the output of this step is no longer kept]\n')
/** How long a runner may be late with an end before the sandbox counts as stuck. */
const LATE_MS = 10_000

/** `endSandbox` is called for a runner that does not answer. */
export function createSteps(runner: Runner, limits: SandboxLimits, endSandbox: () => void): Steps {
  const steps = new Map<string, Step>()
  let dueMs = 0 // the timeouts of all unfinished steps together: they may stand in one queue

  function start(request: StepRequest, code: Uint8Array): Step {
    const { key, timeoutMs } = request
    const before = runner.cell.counters()
    const started = Date.now()
    dueMs += timeoutMs
    let cancelled = false
    let backstop = setTimeout(endSandbox, dueMs + LATE_MS)
    const tell: Step = {
      listeners: new Set(),
      output: [],
      done: undefined,
      kill() {
        if (tell.done || cancelled) return
        cancelled = true
        clearTimeout(backstop)
        backstop = setTimeout(endSandbox, LATE_MS / 2)
        more({ op: 'kill' })
      },
    }
    const finish = (ended: ExecEnd, { full = [], ...told }: Partial<ExecDone>) => {
      clearTimeout(backstop)
      dueMs -= timeoutMs
      const evidence = { before, after: runner.cell.counters(), limits }
      const judged = judgeEnd({ end: ended, ...evidence })
      const end: ExecEnd = judged.kind === 'lost' && cancelled ? { kind: 'cancelled' } : judged
      const hits = limitHits({ end, output: Buffer.concat(tell.output).toString(), full, ...evidence })
      const about = { truncated: false, durationMs: Date.now() - started, sessionRestarted: false, ...told }
      const done: ExecDone = { ...about, end, ...(hits.length > 0 && { hits }) }
      tell.done = done
      for (const listener of tell.listeners) listener({ op: 'done', ...done })
      tell.listeners.clear()
      forget()
    }
    const more = runner.start({ op: 'exec', ...request } satisfies RunnerRequestBody, code, (reply, payload) => {
      if (reply.op === 'out') {
        tell.output.push(payload)
        const { quiet } = reply
        for (const listener of tell.listeners) listener({ op: 'out', ...(quiet && { quiet }) }, payload)
      } else if (reply.op === 'live') for (const listener of tell.listeners) listener({ op: 'live' }, payload)
      else if (reply.op === 'done') finish(reply.end!, reply)
      else if (reply.op === 'error') finish({ kind: 'lost' }, {})
    })
    steps.set(key, tell)
    return tell
  }

  function forget(): void {
    const finished = [...steps.values()].filter((step) => step.done)
    const size = (step: Step) => step.output.reduce((sum, part) => sum + part.length, 0)
    let total = finished.reduce((sum, step) => sum + size(step), 0)
    for (const step of finished) {
      if (total <= KEPT_BYTES) return
      total -= size(step) - FORGOTTEN.length
      step.output = [FORGOTTEN]
    }
  }

  return {
    run(request, code, listener) {
      const known = steps.get(request.key)
      const step = known ?? start(request, code)
      if (known && known.output.length > 0) listener({ op: 'out', replayed: true }, Buffer.concat(known.output))
      if (step.done) listener({ op: 'done', ...step.done })
      else step.listeners.add(listener)
      return { kill: () => step.kill(), leave: () => step.listeners.delete(listener) }
    },
  }
}

export function errorReply(error: unknown): ReplyBody {
  if (error instanceof SandboxError) return { op: 'error', code: error.code, message: error.message }
  return { op: 'error', code: 'unavailable', message: error instanceof Error ? error.message : String(error) }
}
