/**
 * Finds the limits that a step reached. The kernel counts some (memory, processes, processor). Others only show as an error
 * number; those are found by what is full when the step ends, and by error messages in its output.
 */
import { type Counters, OPEN_FILES } from '../driver.ts'
import type { ExecEnd, LimitHit, SandboxLimits } from '../port.ts'

/** Messages of bash, dash and Python when no process or thread can be started. */
const NO_PROCESS = /(?:fork|started): (?:retry: )?Resource temporarily unavailable|Cannot fork|can't start new thread/
/** The same from Node and the C library: the beginning of a line, and what must follow in it. */
const NO_PROCESS_LINES = [
  [/spawn(?:Sync)? /, /EAGAIN/],
  [/pthread_create/, /Resource temporarily|failed/],
] as const
/** The same in a traceback of Python, which names the call some lines earlier. */
const BLOCKED = 'BlockingIOError: [Errno 11]'
const TRACEBACK_CHARS = 500
const NO_SPACE = /No space left on device|ENOSPC|Errno 28\b/
const NO_MEMORY = /\bMemoryError\b|Cannot allocate memory|heap out of memory|ENOMEM/
const NO_DESCRIPTOR = /Too many open files(?! in system)|EMFILE|Errno 24\b/
/** A step that timed out reports the processor limit if more than this part of its periods was throttled. */
const THROTTLED_SHARE = 0.3

export interface Evidence {
  readonly end: ExecEnd
  readonly output: string
  /** Limits that were reached when the step ended, by the runner. */
  readonly full: readonly LimitHit[]
  readonly before: Counters
  readonly after: Counters
  readonly limits: SandboxLimits
}

/** Corrects the end by the kernel's counters: a failure after a kill for memory is the memory limit. */
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

/** Runs in linear time. A single expression would be quadratic, and the step controls its output. */
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
