/** Templates and their children, by their processes on the host. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupsOf, hostPid, processesWith, type World } from '../fixture.ts'

/** Pids of the world's templates on the host, oldest first. */
export function templates({ dataDir }: World): number[] {
  const host = hostPid(dataDir)
  return processesWith('/run/errand/template.py')
    .filter(
      (pid) =>
        isBelow(pid, host) &&
        statusOf(pid, 'NSpid').endsWith('\t1') &&
        statusOf(pid, 'NSpid').split('\t').length === depth() + 2,
    )
    .toSorted((a, b) => a - b)
}

/** The runners of sandboxes: PID 1 of a pid namespace below a template. */
export function firstProcesses(world: World): number[] {
  const above = templates(world)
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => above.includes(Number(statusOf(pid, 'PPid'))))
    .toSorted((a, b) => a - b)
}

/** Number of pid namespaces of this process, minus one. */
const depth = () => statusOf(process.pid, 'NSpid').split('\t').length - 1

function isBelow(pid: number, above: number): boolean {
  for (let at = pid; at > 1; at = Number(statusOf(at, 'PPid'))) if (at === above) return true
  return false
}

function statusOf(pid: number, field: string): string {
  try {
    return new RegExp(`^${field}:\\t(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? ''
  } catch {
    return ''
  }
}

export function isThere(pid: number): boolean {
  return !['', 'Z'].includes(statusOf(pid, 'State').charAt(0))
}

/** Writable shared mappings. */
export function sharedMemory(pid: number): string[] {
  return readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .filter((line) => /^\S+ .w.s /.test(line))
}

export function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`)
    .map(Number)
    .toSorted((a, b) => a - b)
    .map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
}

/** Bytes in each sandbox's memory cgroup. */
export function usages({ dataDir }: World): number[] {
  return cgroupsOf(dataDir)!.flatMap((group) => {
    for (const file of ['memory.usage_in_bytes', 'memory.current']) {
      try {
        return [Number(readFileSync(join(group, file), 'utf8'))]
      } catch {
        // A group of another controller, or of the other version.
      }
    }
    return []
  })
}
