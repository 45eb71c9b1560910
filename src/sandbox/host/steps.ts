/**
 * The steps of one sandbox by key. A repeated key joins the running step or gets the first result; nothing runs twice. The
 * host decides how a step ended, because only the host sees why the kernel killed a process.
 */
import { type ExecEnd, SandboxError, type SandboxLimits } from '../port.ts'
import type { ExecDone, OutputLimits, ReplyBody, RunnerRequestBody } from '../protocol.ts'
import { judgeEnd, limitHits } from './limit-hits.ts'
import type { Runner } from './runner.ts'

export type Listener = (reply: ReplyBody, payload?: Uint8Array) => void

export interface StepRequest extends Readonly<OutputLimits> {
  readonly key: string
  readonly language: 'python' | 'javascript' | 'bash'
  readonly timeoutMs: number
}

export interface Steps {
  /** Runs a step or joins it. `leave` removes the listener, `kill` ends the step. */
  run(request: StepRequest, code: Uint8Array, listener: Listener): { kill(): void; leave(): void }
}

interface Step {
  readonly listeners: Set<Listener>
  output: Buffer[]
  done: ExecDone | undefined
  kill(): void
}

/** Bytes of output kept from finished steps. Beyond it the oldest output is dropped; the end of a step is always kept. */
const KEPT_BYTES = 4 * 1024 * 1024
const FORGOTTEN = Buffer.from('[the output of this step is no longer kept]\n')
/** Milliseconds after a step's timeout at which a sandbox counts as stuck. */
const LATE_MS = 10_000

/** `endSandbox` is called for a runner that does not answer. */
export function createSteps(runner: Runner, limits: SandboxLimits, endSandbox: () => void): Steps {
  const steps = new Map<string, Step>()
  let dueMs = 0 // the sum of the timeouts of all unfinished steps, which may be in one queue

  function start(request: StepRequest, code: Uint8Array): Step {
    const { key, timeoutMs } = request
    const before = runner.cell.counters()
    const started = Date.now()
    dueMs += timeoutMs
    let cancelled = false
    let backstop = setTimeout(endSandbox, dueMs + LATE_MS)
    const step: Step = {
      listeners: new Set(),
      output: [],
      done: undefined,
      kill() {
        if (step.done || cancelled) return
        cancelled = true
        clearTimeout(backstop)
        backstop = setTimeout(endSandbox, LATE_MS / 2)
        more({ op: 'kill' })
      },
    }
    const finish = (ended: ExecEnd, { full = [], ...reported }: Partial<ExecDone>) => {
      clearTimeout(backstop)
      dueMs -= timeoutMs
      const evidence = { before, after: runner.cell.counters(), limits }
      const judged = judgeEnd({ end: ended, ...evidence })
      const end: ExecEnd = judged.kind === 'lost' && cancelled ? { kind: 'cancelled' } : judged
      const hits = limitHits({ end, output: Buffer.concat(step.output).toString(), full, ...evidence })
      const about = { truncated: false, durationMs: Date.now() - started, sessionRestarted: false, ...reported }
      const done: ExecDone = { ...about, end, ...(hits.length > 0 && { hits }) }
      step.done = done
      for (const listener of step.listeners) listener({ op: 'done', ...done })
      step.listeners.clear()
      forget()
    }
    const more = runner.start({ op: 'exec', ...request } satisfies RunnerRequestBody, code, (reply, payload) => {
      if (reply.op === 'out') {
        step.output.push(payload)
        const { quiet } = reply
        for (const listener of step.listeners) listener({ op: 'out', ...(quiet && { quiet }) }, payload)
      } else if (reply.op === 'live') for (const listener of step.listeners) listener({ op: 'live' }, payload)
      else if (reply.op === 'done') finish(reply.end!, reply)
      else if (reply.op === 'error') finish({ kind: 'lost' }, {})
    })
    steps.set(key, step)
    return step
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
