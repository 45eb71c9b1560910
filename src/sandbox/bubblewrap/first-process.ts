/** The first process of a cell by its pid on the host. When it ends, every process of the cell ends. */
import { readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

export interface FirstProcess {
  readonly pid: number
  readonly started: string
}

/** Undefined if the process has ended. */
export function firstProcess(pid: number): FirstProcess | undefined {
  const started = startTime(pid)
  return started === undefined ? undefined : { pid, started }
}

/** Reads the host's pid of the cell's PID 1 from bubblewrap. Undefined if no process was started. */
export async function readFirstProcess(info: Readable): Promise<FirstProcess | undefined> {
  let text = ''
  try {
    for await (const piece of info.setEncoding('utf8')) {
      text += piece
      if (text.includes('}')) break // not at the end: the cell inherits the other end of the pipe
    }
    return firstProcess((JSON.parse(text) as { 'child-pid': number })['child-pid'])
  } catch {
    return undefined
  }
}

/**
 * Start time of the process in ticks: distinguishes it from a later process with the same pid. Undefined if it has ended or
 * is a zombie: after the end of bubblewrap it is an orphan, and init may take long to reap it.
 */
function startTime(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

/** Kills the process and waits for its end. The kernel ends PID 1 of a namespace only after all other processes in it. */
export async function waitUntilGone({ pid, started }: FirstProcess): Promise<void> {
  for (let waited = 0; startTime(pid) === started; waited++) {
    if (waited > 2000) throw new Error(`Process ${pid}, the first of a sandbox, could not be killed in 10 s.`)
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      return
    }
    await sleep(waited < 50 ? 1 : 5)
  }
}
