/** Isolation: the self-test's findings, and attacks on canaries that listen on addresses of this test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { DRIVER, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

test('the facts list the attacks of the self-test, all refused, and what is inside', async () => {
  const { driver, enforced, notEnforced, probes, inside } = await world.sandboxes.facts()
  expect(driver).toBe(DRIVER.driver)
  expect(probes.filter(({ refused }) => !refused)).toEqual([])
  expect(probes.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'mount',
      'setns',
      'ptrace',
      'bpf',
      'io_uring_setup',
      'a vsock socket',
      "the host's loopback",
    ]),
  )
  expect(enforced.join('\n')).toMatch(/network: none/)
  expect(notEnforced.join('\n')).toMatch(/kernel: shared/)
  expect(inside).toMatch(/^Python 3\.\d+ \(.+\), Node 24, bash/)
})

/** Directories of an image, empty as Debian makes them. */
const OF_AN_IMAGE = ['boot', 'home', 'media', 'mnt', 'opt', 'root', 'srv', 'sys', 'var']

test('the root is read-only, and nothing of the host is visible but /usr with bubblewrap', async () => {
  const { output } = await run(
    sandbox,
    'bash',
    'ls /; for d in / /usr /etc /dev /errand /proc/sys/kernel /usr/bin; do touch $d/x 2>/dev/null && echo "wrote $d"; done; true',
  )
  const seen = output.trim().split('\n')
  expect(
    seen.filter((name) => !/^(bin|sbin|lib|lib32|lib64|libx32|dev|errand|etc|proc|run|tmp|usr|workspace)$/.test(name)),
  ).toEqual(DRIVER.driver === 'docker' ? OF_AN_IMAGE : [])
  expect(
    (await run(sandbox, 'bash', 'cat /etc/shadow /etc/ssl/private/* /proc/1/environ /proc/cmdline 2>/dev/null | wc -c'))
      .output,
  ).toBe('0\n')
  expect(
    (await run(sandbox, 'bash', `ls -A ${world.dataDir} /root /home /sys 2>/dev/null | grep -v ':$' | wc -w`)).output,
  ).toBe('0\n')
})

test('code inside cannot kill, stop, read or impersonate the runner', async () => {
  const code = `
import os, signal
for s in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV): os.kill(1, s)
def refused(action):
    try: action()
    except OSError: return True
    return False
[refused(lambda: open('/proc/1/mem', 'rb')), refused(lambda: os.open('/proc/1/fd/1', os.O_WRONLY)), refused(lambda: os.listdir('/proc/1/fd'))]`
  expect((await run(sandbox, 'python', code)).output).toBe('[True, True, True]\n')
  expect((await run(sandbox, 'bash', 'echo alive')).output).toBe('alive\n')
})
