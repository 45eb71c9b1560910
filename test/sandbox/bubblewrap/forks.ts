/** Templates and what was forked from them, as the host sees their processes. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupsOf, hostPid, processesWith, type World } from '../fixture.ts'

/** Host's numbers of the world's templates, oldest first. */
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

/** Of sandboxes, the runner: the first in its pid namespace, below a template. */
export function firstProcesses(world: World): number[] {
  const above = templates(world)
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => above.includes(Number(statusOf(pid, 'PPid'))))
    .toSorted((a, b) => a - b)
}

/** How many pid namespaces this process stands in, less one. */
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

/** Mappings that it could write to and others would see. */
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

/** Bytes in each sandbox's memory group. */
export function usages({ dataDir }: World): number[] {
  return cgroupsOf(dataDir)!.flatMap((group) => {
    for (const file of ['memory.usage_in_bytes', 'memory.current']) {
      try {
        return [Number(readFileSync(join(group, file), 'utf8'))]
      } catch {
        // Another controller's, or the other version's.
      }
    }
    return []
  })
}
