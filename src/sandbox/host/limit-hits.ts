/**
 * Which limits a step ran into. The kernel counts what it can (memory, processes, processor); what it only answers with
 * an error number is told by what is full as the step ends, and by what the step itself says of it.
 */
import { type Counters, OPEN_FILES } from '../driver.ts'
import type { ExecEnd, LimitHit, SandboxLimits } from '../port.ts'

/** Messages of bash, dash and Python that no process or thread could be started. */
const NO_PROCESS = /(?:fork|started): (?:retry: )?Resource temporarily unavailable|Cannot fork|can't start new thread/
/** The same on one line of Node and the C library: the beginning, and what must follow it. */
const NO_PROCESS_LINES = [
  [/spawn(?:Sync)? /, /EAGAIN/],
  [/pthread_create/, /Resource temporarily|failed/],
] as const
/** The same as Python's traceback, which names the call some lines before. */
const BLOCKED = 'BlockingIOError: [Errno 11]'
const TRACEBACK_CHARS = 500
const NO_SPACE = /No space left on device|ENOSPC|Errno 28\b/
const NO_MEMORY = /\bMemoryError\b|Cannot allocate memory|heap out of memory|ENOMEM/
const NO_DESCRIPTOR = /Too many open files(?! in system)|EMFILE|Errno 24\b/
/** Of the time slices of a step that ran out of time: more than this, and its share of the processor is part of why. */
const THROTTLED_SHARE = 0.3

export interface Evidence {
  readonly end: ExecEnd
  readonly output: string
  /** What the runner found at its limit as the step ended. */
  readonly full: readonly LimitHit[]
  readonly before: Counters
  readonly after: Counters
  readonly limits: SandboxLimits
}

/** The end as the kernel's counters show it: a failure after a kill for memory is the memory limit's. */
export function judgeEnd({ end, before, after, limits }: Omit<Evidence, 'output' | 'full'>): ExecEnd {
  const failed = end.kind === 'signal' || end.kind === 'lost' || (end.kind === 'exit' && end.code !== 0)
  if (!failed || after.memoryKills === before.memoryKills) return end
  return { kind: 'memory_limit', limitMiB: limits.memoryMiB, ...(end.kind === 'lost' && { lost: true }) }
}

export function limitHits({ end, output, full, before, after, limits }: Evidence): LimitHit[] {
  const failed = end.kind !== 'exit' || end.code !== 0
  const hits: LimitHit[] = []
  if (end.kind === 'exit' && after.memoryKills > before.memoryKills) {
    hits.push({ kind: 'memory', mebibytes: limits.memoryMiB })
  }
  if (NO_MEMORY.test(output)) hits.push(...full.filter(({ kind }) => kind === 'process_memory'))
  const atTheEnd = (kind: LimitHit['kind']) => failed && full.some((hit) => hit.kind === kind)
  if (after.forksRefused > before.forksRefused || atTheEnd('processes') || noProcess(output)) {
    hits.push({ kind: 'processes', count: limits.pids })
  }
  if (failed || NO_SPACE.test(output)) {
    const places = full.filter(({ kind }) => kind === 'space' || kind === 'files')
    hits.push(...places)
    if (places.length === 0 && NO_SPACE.test(output)) {
      hits.push({ kind: 'room', mebibytes: limits.workspaceMiB, files: limits.files })
    }
  }
  if (NO_DESCRIPTOR.test(output)) hits.push({ kind: 'open_files', count: OPEN_FILES })
  const throttled = after.throttled - before.throttled
  if (end.kind === 'timeout' && throttled > THROTTLED_SHARE * (after.periods - before.periods)) {
    hits.push({ kind: 'processor', cores: limits.cpus })
  }
  return hits
}

/** Linear: one expression for all of it would be quadratic, and the step chooses its output. */
function noProcess(output: string): boolean {
  if (NO_PROCESS.test(output) || forkBlocked(output)) return true
  return output.split('\n').some((line) =>
    NO_PROCESS_LINES.some(([begin, then]) => {
      const at = line.search(begin)
      return at >= 0 && then.test(line.slice(at))
    }),
  )
}

function forkBlocked(output: string): boolean {
  for (let at = output.indexOf(BLOCKED); at >= 0; at = output.indexOf(BLOCKED, at + BLOCKED.length)) {
    if (output.slice(Math.max(0, at - TRACEBACK_CHARS), at).includes('fork')) return true
  }
  return false
}
