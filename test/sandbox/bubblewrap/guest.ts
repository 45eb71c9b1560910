/**
 * Runs in a virtual machine whose kernel has only control groups of version 2 (script/prove-cgroup-v2): as root, with cells
 * started whole and forked, and as an ordinary user with and without a delegated group. Checks that limits are enforced and
 * reported, or that their absence is reported. Prints a line for each check; exits with 1 if one fails.
 */
import { readdirSync } from 'node:fs'
import { openBubblewrap } from '../../../src/sandbox/bubblewrap/bubblewrap.ts'
import { createRunner } from '../../../src/sandbox/host/runner.ts'
import { createSteps } from '../../../src/sandbox/host/steps.ts'
import type { Language } from '../../../src/sandbox/port.ts'
import type { ExecDone } from '../../../src/sandbox/protocol.ts'

const [role, stateDir = ''] = process.argv.slice(2)
const limits = {
  memoryMiB: 192,
  cpus: 0.9,
  pids: 16,
  workspaceMiB: 16,
  files: 1000,
  outputBytes: 20_000,
  saveAs: '',
  saveBytes: 0,
}
let wrong = 0

function expect(what: string, holds: boolean, found: unknown): void {
  if (!holds) wrong++
  console.log(`${holds ? 'ok  ' : 'FAIL'} ${role}: ${what}${holds ? '' : `: ${JSON.stringify(found)}`}`)
}

const groups = () => {
  return readdirSync('/sys/fs/cgroup', { recursive: true, encoding: 'utf8' }).filter((path) =>
    /errand-\w+\/[a-z0-9]+-\d+$/.test(path),
  )
}

// The driver alone, without the host's process and self-test: an emulated machine is too slow for their time limits.
const whole = await openBubblewrap({ rootfs: undefined, forkServer: 'auto', stateDir, dockerHost: 'unix:///none' })
const faster = role === 'forked' ? await whole.faster!.open() : undefined
const driver = faster ?? whole
const { enforced, notEnforced } = driver.describeLimits(limits)
console.log(`     ${role}: enforced: ${enforced.join('; ')}`)
console.log(`     ${role}: not enforced: ${notEnforced.join('; ')}`)
const cell = await driver.launch({ limits, profile: 'code', mounts: [] })
const runner = createRunner(cell)
await runner.ready
const steps = createSteps(runner, limits, () => void cell.end())

let key = 0
function run(language: Language, code: string, timeoutMs = 120_000): Promise<ExecDone & { output: string }> {
  const request = { key: String(++key), language, timeoutMs, outputBytes: limits.outputBytes, saveAs: '', saveBytes: 0 }
  return new Promise((resolve) => {
    let output = ''
    steps.run(request, Buffer.from(code), (reply, bytes) => {
      if (reply.op === 'out') output += Buffer.from(bytes!).toString()
      else if (reply.op === 'done') resolve({ ...(reply as unknown as ExecDone), output })
    })
  })
}

const bomb = 'blocks = []\nwhile True: blocks.append(bytearray(16 * 2**20))'
const forks = 'for i in $(seq 30); do sleep 300 & done; wait'
const spin = 'while :; do :; done & while :; do :; done'
const hits = async (code: string, timeoutMs: number) => (await run('bash', code, timeoutMs)).hits ?? []
if (role === 'alone') {
  for (const what of [/^memory of a sandbox as a whole/, /^processor time/]) {
    expect(
      `this is reported as not enforced: ${what}`,
      notEnforced.some((fact) => what.test(fact)),
      notEnforced,
    )
  }
  expect(
    'a memory bomb meets the limit of its process',
    (await run('python', bomb)).output.includes('MemoryError'),
    'no MemoryError',
  )
} else {
  for (const what of ['memory', 'processor', 'processes']) {
    expect(
      `${what} by cgroup v2`,
      enforced.some((fact) => fact.startsWith(`${what}:`) && fact.endsWith('(cgroup v2)')),
      enforced,
    )
  }
  const memory = await run('python', bomb)
  expect('a memory bomb ends by the memory limit', memory.end.kind === 'memory_limit', memory)
  const part = await run('bash', `python3 -c '${bomb}'; true`)
  expect('a process killed for memory is reported', part.hits?.[0]?.kind === 'memory', part)
  const slow = await hits(spin, 5000)
  expect(
    'throttling is reported',
    slow.some(({ kind }) => kind === 'processor'),
    slow,
  )
}
const many = await hits(forks, 60_000)
expect(
  'the process limit is reported',
  many.some(({ kind }) => kind === 'processes'),
  many,
)
const alive = await run('bash', 'echo alive')
expect('the sandbox lives on', alive.output === 'alive\n', alive)
if (role !== 'alone') expect('it has a group', groups().length === 1, groups())
await cell.end()
expect('no group is left of it', groups().length === 0, groups())
await faster?.close()
await whole.close()
console.log(wrong === 0 ? `PROVED ${role}` : `BROKEN ${role}`)
process.exit(wrong === 0 ? 0 : 1)
