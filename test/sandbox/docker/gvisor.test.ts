/** Sandboxes with gVisor's runsc: a kernel of their own, the same steps and files, and the reported exceptions. */
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sandbox } from '../../../src/sandbox/port.ts'
import { RUNSC } from '../dockerd.ts'
import { LIMITS, openWorld, run, type World } from '../fixture.ts'

// Not every Debian has it; CI does.
const hasRunsc = process.env.CI !== undefined || existsSync(RUNSC)

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  if (!hasRunsc) return
  world = await openWorld({ runtime: 'auto' }) // the daemon has runsc: it is taken
  sandbox = await world.sandbox('gvisor', { ...LIMITS, memoryMiB: 512 })
})
afterAll(() => world?.close())

test.runIf(hasRunsc)('the kernel is not the host’s, and the facts say so', async () => {
  const { output } = await run(sandbox, 'bash', 'uname -r; cat /proc/version')
  expect(output).toMatch(/^4\.4\.0\nLinux version 4\.4\.0/)
  const { enforced, notEnforced, probes } = await world.sandboxes.facts()
  expect(enforced.join('\n')).toMatch(/kernel: one of its own for each sandbox \(runsc\)/)
  expect(notEnforced.join('\n')).toMatch(/number of files: bounded by memory alone \(runsc\)/)
  const open = probes.filter(({ refused }) => !refused).map(({ name }) => name)
  // Nothing of the host, of the network or of another sandbox is among what it lets code do with its own kernel.
  expect(
    open.filter((name) => /loopback|network|secret|another sandbox|writing|mount$|seeing|shared|DNS/.test(name)),
  ).toEqual([])
})

test.runIf(hasRunsc)('steps, sessions and files work as with other runtimes', async () => {
  await run(sandbox, 'python', 'x = 20')
  expect((await run(sandbox, 'python', 'x + 1')).output).toBe('21\n')
  expect((await run(sandbox, 'javascript', '6 * 7')).output).toBe('42\n')
  await sandbox.writeFile('in.txt', Buffer.from('text'), 'write')
  expect((await run(sandbox, 'bash', 'cat in.txt; touch /usr/x')).output).toMatch(
    /^texttouch: .*(Read-only file system|Permission denied)/,
  )
  expect((await run(sandbox, 'bash', 'trap "" TERM; (setsid sleep 60 &); sleep 60', 500)).end.kind).toBe('timeout')
  expect((await run(sandbox, 'bash', 'echo alive')).output).toBe('alive\n')
})
