/** The same sandbox run by an ordinary user: no uid of its own, no cgroup unless delegated, and both said. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findPlaces } from '../../../src/sandbox/cgroups.ts'
import type { ExecResult, SandboxFacts } from '../../../src/sandbox/port.ts'
import { LIMITS } from '../fixture.ts'

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

/** A place that every user can come to, with the sandbox's own source, what that imports, and this Node: the checkout may lie in /root. */
let place: string
beforeAll(() => {
  place = mkdtempSync('/tmp/errand-test-')
  for (const part of ['sandbox', 'runtime'])
    cpSync(join(import.meta.dirname, '../../../src', part), join(place, part), { recursive: true })
  writeFileSync(join(place, 'package.json'), '{"type":"module"}')
  writeFileSync(join(place, 'script.ts'), SCRIPT)
  try {
    linkSync(process.execPath, join(place, 'node'))
  } catch {
    copyFileSync(process.execPath, join(place, 'node'))
  }
  mkdirSync(join(place, 'data'))
  execFileSync('chmod', ['-R', 'a+rX', place])
  if (isRoot) chownSync(join(place, 'data'), NOBODY, NOBODY)
})
afterAll(() => rmSync(place, { recursive: true, force: true }))

const SCRIPT = `
import { mkdirSync, writeFileSync } from 'node:fs'
import { openSandboxes } from './sandbox/open-sandboxes.ts'
const limits = ${JSON.stringify({ ...LIMITS, pids: 40 })}
const log = { debug() {}, info() {}, warn() {}, error() {} }, signal = new AbortController().signal
const sandboxes = await openSandboxes({ driver: 'bubblewrap', dataDir: process.argv[2], limits, pool: 1, maxOpen: 2, rootfs: undefined, forkServer: 'auto', log })
const sandbox = await sandboxes.open({ interactionId: 'i', epoch: 1, lifetimeMs: 60000, limits }, signal)
let n = 0
const run = (language, code, timeoutMs = 10000) => sandbox.exec({ key: String(++n), language, code, timeoutMs }, () => {}, signal)
const results = {
  uid: process.getuid(),
  facts: await sandboxes.facts(),
  state: [await run('python', 'x = 1'), await run('python', 'x + 1')],
  javascript: await run('javascript', '1 + 1'),
  memory: await run('python', 'blocks = []\\nwhile True: blocks.append(bytearray(16 * 2**20))'),
  forks: await run('bash', 'for i in $(seq 60); do sleep 60 & done', 2000),
  timeout: await run('bash', 'trap "" TERM; (setsid sleep 60 &); sleep 60', 300),
  alive: await run('bash', 'echo alive'),
  written: await sandbox.writeFile('f', Buffer.from('text'), 'write').then(() => sandbox.readFile('f', 10)).then((b) => Buffer.from(b).toString()),
}
const shown = process.argv[2] + '/shown'
mkdirSync(shown)
writeFileSync(shown + '/note.txt', 'a note')
const mounts = [{ source: shown, target: '/skills/shown' }]
const second = await sandboxes.open({ interactionId: 'j', epoch: 1, lifetimeMs: 60000, limits, mounts }, signal)
const code = 'cat /skills/shown/note.txt; rm -f /skills/shown/note.txt; echo x > /skills/shown/note.txt; cat /skills/shown/note.txt'
results.shown = await second.exec({ key: 'a', language: 'bash', code: '{ ' + code + '; } 2>/dev/null', timeoutMs: 10000 }, () => {}, signal)
await Promise.all([sandbox.destroy(), second.destroy()])
await sandboxes.close()
console.log(JSON.stringify(results))
`

interface Results {
  readonly uid: number
  readonly facts: SandboxFacts
  readonly state: [ExecResult, ExecResult]
  readonly javascript: ExecResult
  readonly memory: ExecResult
  readonly forks: ExecResult
  readonly timeout: ExecResult
  readonly alive: ExecResult
  readonly shown: ExecResult
  readonly written: string
}

test('a Node that no other user can come to runs JavaScript inside all the same', () => {
  const closed = mkdtempSync('/tmp/errand-test-') // mode 0700, as /root is
  linkSync(join(place, 'node'), join(closed, 'node'))
  const { stdout, stderr } = spawnSync(join(closed, 'node'), [join(place, 'script.ts'), closed], {
    encoding: 'utf8',
    env: {},
    cwd: '/',
  })
  rmSync(closed, { recursive: true })
  expect(stderr).toBe('')
  expect((JSON.parse(stdout) as Results).javascript.output).toBe('2\n')
})

/** The script as an ordinary user, as a member of these control groups. */
function runAsOrdinary(dataDir: string, groups: readonly string[]): Results {
  const script = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 99; shift; done; shift; exec "$@"'
  const drop = isRoot ? ['setpriv', '--reuid', `${NOBODY}`, '--regid', `${NOBODY}`, '--clear-groups', '--'] : []
  const command = [...groups, '--', ...drop, join(place, 'node'), join(place, 'script.ts'), dataDir]
  const { stdout, stderr, status } = spawnSync('sh', ['-c', script, 'sh', ...command], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
    cwd: '/',
  })
  expect([stderr, status]).toEqual(['', 0])
  const results = JSON.parse(stdout) as Results
  if (isRoot) expect(results.uid).toBe(NOBODY)
  const { enforced, notEnforced, probes } = results.facts
  // Limits that need root are reported as missing; every attack is refused.
  const conceded = probes.filter(({ refused }) => !refused).map(({ name }) => name)
  if (enforced.some((fact) => fact.startsWith('number of files:'))) expect(conceded).not.toContain('files without end')
  else expect(notEnforced.join('\n')).toContain('number of files')
  const own = ['files without end', 'writing to the settings of its own namespaces']
  const ofDevices = "another sandbox's locks on devices"
  expect(conceded.filter((name) => !own.includes(name) && !name.startsWith(ofDevices))).toEqual([])
  expect(notEnforced.join('\n')).toContain('locks and watches on /dev/null reach others')
  expect(notEnforced.join('\n')).toContain("sandboxes run under Errand's own uid")
  expect(results.state[1].output).toBe('2\n')
  expect(results.javascript.output).toBe('2\n')
  expect(results.forks.output).toContain('Resource temporarily unavailable')
  expect(results.forks.hits).toEqual([{ kind: 'processes', count: 40 }])
  expect(results.timeout.end.kind).toBe('timeout')
  expect(results.alive.output).toBe('alive\n')
  expect(results.written).toBe('text')
  expect(results.shown.output).toBe('a notea note')
  return results
}

test('an unprivileged user gets the same sandbox, and a list of the limits that are not enforced', () => {
  const { facts, memory } = runAsOrdinary(join(place, 'data'), [])
  if (facts.enforced.some((fact) => /^memory: .*cgroup/.test(fact))) {
    expect(memory.end.kind).toBe('memory_limit')
    return
  }
  expect(facts.notEnforced.join('\n')).toMatch(/memory of a sandbox as a whole.*Delegate=yes/)
  expect(facts.notEnforced.join('\n')).toMatch(/processor time: .*Delegate=yes/)
  expect(memory.output).toContain('MemoryError')
  expect(memory.hits).toEqual([{ kind: 'process_memory', mebibytes: LIMITS.memoryMiB + 640 }])
})

test.runIf(isRoot)(
  'an ordinary user to whom control groups were delegated has their limits, and leaves none behind',
  () => {
    const groups = delegate(`errand-test-${process.pid}`)
    try {
      const dataDir = join(place, 'delegated')
      mkdirSync(dataDir)
      chownSync(dataDir, NOBODY, NOBODY)
      const { facts, memory } = runAsOrdinary(dataDir, groups.joined)
      for (const limit of [
        /^memory: 256 MiB.*\(cgroup v\d\)$/,
        /^processor: 2 cores \(cgroup v\d\)$/,
        /^processes: 40 \(cgroup/,
      ]) {
        expect(facts.enforced.filter((fact) => limit.test(fact))).toHaveLength(1)
      }
      expect(memory.end).toEqual({ kind: 'memory_limit', limitMiB: LIMITS.memoryMiB })
      expect(groups.left()).toEqual([])
    } finally {
      groups.remove()
    }
  },
)

/** Groups that the ordinary user may make groups in, as an administrator or systemd hands them over. */
function delegate(name: string) {
  const { version, bases } = findPlaces()!
  const own = [...new Set(bases.values())].map((base) => join(base, name))
  const joined = own.map((group) => (version === 'v2' ? join(group, 'main') : group))
  for (const group of [...own, ...joined]) mkdirSync(group, { recursive: true })
  if (version === 'v2') writeFileSync(join(own[0]!, 'cgroup.subtree_control'), '+memory +pids +cpu')
  for (const group of [...own, ...joined]) {
    for (const file of ['', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads']) {
      if (existsSync(join(group, file))) chownSync(join(group, file), NOBODY, NOBODY)
    }
  }
  return {
    joined,
    left: () => own.flatMap((group) => readdirSync(group).filter((entry) => entry.startsWith('errand-'))),
    remove: () => {
      for (const group of new Set([...joined, ...own])) rmdirSync(group)
    },
  }
}
