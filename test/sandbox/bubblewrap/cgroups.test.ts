/** Control groups: the files of each version. The tests of steps and hosts show their effect. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Controller, openCgroups } from '../../../src/sandbox/cgroups.ts'

const LIMITS = { memoryMiB: 256, cpus: 0.5, pids: 64, workspaceMiB: 32, files: 5000, outputBytes: 1000 }

let base: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'errand-test-'))
})
afterEach(() => rmSync(base, { recursive: true }))

const read = (path: string) => readFileSync(join(base, path), 'utf8')

test('version 1 has a group in each controller', () => {
  const controllers: Controller[] = ['memory', 'pids', 'cpu']
  for (const controller of controllers) mkdirSync(join(base, controller))
  const bases = new Map(controllers.map((controller) => [controller, join(base, controller)]))
  const cgroups = openCgroups('errand-x', { version: 'v1', bases })
  const group = cgroups.create('1', LIMITS)!
  expect([cgroups.version, [...cgroups.controllers]]).toEqual(['v1', controllers])
  expect(read('memory/errand-x/1/memory.limit_in_bytes')).toBe(String(256 * 2 ** 20))
  expect(Number(read('pids/errand-x/1/pids.max'))).toBeGreaterThanOrEqual(64)
  expect([read('cpu/errand-x/1/cpu.cfs_quota_us'), read('cpu/errand-x/1/cpu.cfs_period_us')]).toEqual([
    '50000',
    '100000',
  ])
  expect(group.joinFiles).toEqual(controllers.map((controller) => join(base, controller, 'errand-x/1/cgroup.procs')))
  writeFileSync(join(base, 'memory/errand-x/1/memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\noom_kill 3\n')
  writeFileSync(join(base, 'pids/errand-x/1/pids.events'), 'max 7\n')
  writeFileSync(join(base, 'cpu/errand-x/1/cpu.stat'), 'nr_periods 50\nnr_throttled 40\nthrottled_time 9\n')
  expect(group.counters()).toEqual({ memoryKills: 3, forksRefused: 7, periods: 50, throttled: 40 })
})

test('version 2 has one group with all controllers enabled', () => {
  const bases = new Map((['memory', 'pids', 'cpu'] as const).map((controller) => [controller, base]))
  const cgroups = openCgroups('errand-x', { version: 'v2', bases })
  const group = cgroups.create('1', LIMITS)!
  expect(read('errand-x/cgroup.subtree_control')).toBe('+cpu') // the last of three writes: a plain file keeps only the last
  expect([read('errand-x/1/memory.max'), read('errand-x/1/cpu.max')]).toEqual([String(256 * 2 ** 20), '50000 100000'])
  expect(group.joinFiles).toEqual([join(base, 'errand-x/1/cgroup.procs')])
  writeFileSync(join(base, 'errand-x/1/memory.events'), 'low 0\noom 2\noom_kill 1\noom_group_kill 0\n')
  writeFileSync(join(base, 'errand-x/1/cpu.stat'), 'usage_usec 5\nnr_periods 4\nnr_throttled 3\nthrottled_usec 9\n')
  expect(group.counters()).toEqual({ memoryKills: 1, forksRefused: 0, periods: 4, throttled: 3 })
})

test('without a place for groups no limit is set, and the facts say so', () => {
  writeFileSync(join(base, 'file'), '')
  const cgroups = openCgroups('errand-x', { version: 'v2', bases: new Map([['memory', join(base, 'file')]]) })
  expect([cgroups.version, cgroups.create('1', LIMITS), cgroups.controllers.size]).toEqual(['none', undefined, 0])
})
