/** Tests of the image: its contents, the security options that its container needs (each row of docs/install.md), and its life cycle. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { imageProfile, MAKES_SANDBOXES } from '../../../script/seccomp.ts'
import { until } from '../../contract/invariants.ts'
import { ROOT } from '../../package/install.ts'
import { dockerAt, errandImage, inDirectory } from './images.ts'

const IMAGE = 'errand:test'
const PAGE = readFileSync(join(ROOT, 'docs/install.md'), 'utf8')
const SECCOMP = join(ROOT, 'deploy/image/seccomp.json')
const run = promisify(execFile)
const docker = dockerAt(inject('docker')!.dockerHost)

/** Options of the page's `docker run` command, without ports and volume. */
const CLOSED = ['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--read-only', '--tmpfs', '/tmp']
const OPTIONS = {
  seccomp: ['--security-opt', `seccomp=${SECCOMP}`],
  systempaths: ['--security-opt', 'systempaths=unconfined'],
  apparmor: ['--security-opt', 'apparmor=unconfined'],
}
const RIGHTS = Object.values(OPTIONS).flat()

beforeAll(() => errandImage(docker), 600_000)

async function doctor(rights: readonly string[]): Promise<string> {
  const command = ['run', '--rm', '--network', 'none', ...CLOSED, ...rights, IMAGE, 'doctor']
  return run('docker', command, { env: docker.env }).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  )
}

test('runs as its own user, and contains no secrets and no build tools', async () => {
  const [{ Config: config }] = JSON.parse(await docker('inspect', IMAGE))
  expect(config).toMatchObject({ User: '10001:10001', StopSignal: 'SIGTERM', Volumes: { '/var/lib/errand': {} } })
  expect(config.Env.filter((line: string) => /KEY|SECRET|TOKEN|PASSWORD/i.test(line))).toEqual([])
  const look = `id -u; find / -xdev \\( -name npm -o -path '*/bin/gcc' -o -name vitest -o -name '*.tgz' -o -name .npmrc -o -path /var/lib/errand/data \\) 2>/dev/null
    find / -xdev -perm /6000 -type f -path '*errand*' 2>/dev/null; find /opt/errand -writable`
  expect(await docker('run', '--rm', '--network', 'none', '--entrypoint', 'sh', IMAGE, '-c', look)).toBe('10001\n')
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(await docker('run', '--rm', '--network', 'none', IMAGE, '--version')).toBe(`${version}\n`)
})

describe('the security options', () => {
  test('deploy/image/seccomp.json is generated from the sandbox’s own table', () => {
    expect(readFileSync(SECCOMP, 'utf8'), 'write it again with node script/seccomp.ts >deploy/image/seccomp.json').toBe(
      imageProfile(),
    )
  })

  test('the sandboxes block every attack with exactly the options on the page', async () => {
    const said = await doctor(RIGHTS)
    // Creating device nodes needs root (SECURITY.md). All other attacks are blocked.
    expect(said.match(/The sandbox does not block: .*/g)).toEqual([expect.stringContaining('locks on devices')])
    expect(said).toMatch(/\d+ of \d+ attacks of the self-test were blocked/)
    expect(said).toContain('number of files: 50000')
    expect(said).toContain('The server can run here.')
  })

  const rows = [...PAGE.matchAll(/^\| `--security-opt (\S+)` \|[^|]*\| `([^`]*)`/gm)].map((row) => row.slice(1, 3))
  test.each(rows)('without %s the start fails with %s', async (right, message) => {
    const others = Object.entries(OPTIONS).filter(([name]) => name !== right!.split('=')[0])
    expect(await doctor(others.flatMap(([, option]) => option))).toContain(message)
  })

  const calls = [...PAGE.matchAll(/^\| `(\w+)` \|[^|]*\| `(bwrap: [^`]*)`/gm)].map((row) => row.slice(1, 3))
  test.each(calls)('without the call %s the start fails with %s', async (call, message) => {
    await inDirectory(async (place) => {
      const less = join(place, 'seccomp.json')
      writeFileSync(less, imageProfile(MAKES_SANDBOXES.filter((name) => name !== call)))
      expect(
        await doctor(['--security-opt', `seccomp=${less}`, ...OPTIONS.systempaths, ...OPTIONS.apparmor]),
      ).toContain(message)
    })
  })

  test('docs/install.md lists all of them', () => {
    // The kernel of the tests has no AppArmor, so that its row has no message. chroot is for the browser.
    expect(rows.map(([right]) => right!.split('=')[0])).toEqual(['seccomp', 'systempaths'])
    expect([...calls.map(([call]) => call), 'chroot'].sort()).toEqual([...MAKES_SANDBOXES].sort())
  })
})

describe('a container', () => {
  const VOLUME = 'errand-test-data'
  const names: string[] = []
  afterAll(async () => {
    for (const name of names) await docker('rm', '-f', name)
    await docker('volume', 'rm', '-f', VOLUME)
  })

  async function start(): Promise<{ name: string; url: string; logs: () => Promise<string> }> {
    const name = `errand-test-${names.length + 1}`
    const port = await freePort()
    names.push(name)
    const settings = ['-e', `ERRAND_PORT=${port}`, '-e', 'ERRAND_HOST=127.0.0.1', '-e', 'ERRAND_DRAIN_S=5']
    // The tests' Docker has no network of its own. The health check runs more often than by default.
    const place = ['--network', 'host', '--volume', `${VOLUME}:/var/lib/errand`, '--health-interval', '1s']
    await docker('run', '--detach', '--name', name, ...place, ...settings, ...CLOSED, ...RIGHTS, IMAGE)
    await until(async () => (await docker('inspect', '-f', '{{.State.Health.Status}}', name)).trim() === 'healthy')
    return { name, url: `http://127.0.0.1:${port}`, logs: () => docker('logs', name) }
  }

  test('is healthy, runs code, leaves no dead process, stops gracefully, and finds its data again after a restart', async () => {
    const first = await start()
    const key = /errand_sk_\w{38}/.exec(await first.logs())![0]
    const headers = { 'x-svc-api-key': key, 'content-type': 'application/json' }
    const body = JSON.stringify({ instruction: 'Compute the first 10 Fibonacci numbers', tools: ['code_execution'] })
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      const answer = await fetch(`${first.url}/v1beta/interactions`, { method: 'POST', headers, body })
      const { id, status, output } = (await answer.json()) as { id: string; status: string; output: string }
      expect([status, output]).toEqual(['completed', expect.stringContaining('34')])
      ids.push(id)
    }
    expect((await fetch(`${first.url}/console`)).status).toBe(200)
    const zombies = 'grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l'
    await until(async () => (await docker('exec', first.name, 'sh', '-c', zombies)).trim() === '0')

    await docker('stop', '--time', '60', first.name)
    expect(await docker('inspect', '-f', '{{.State.ExitCode}} {{.State.OOMKilled}}', first.name)).toBe('0 false\n')
    expect(await first.logs()).toContain('Stopping: running interactions have 5 s to end.')

    const second = await start()
    const kept = await fetch(`${second.url}/v1beta/interactions/${ids[0]}`, { headers })
    expect(await kept.json()).toMatchObject({ status: 'completed' })
    await docker('stop', '--time', '60', second.name)
  })
})

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done))
  const { port } = probe.address() as { port: number }
  await new Promise((done) => probe.close(done))
  return port
}
