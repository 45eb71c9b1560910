/** The docker driver: cleanup after a dead host, refused settings, and an image as the root of bubblewrap's sandboxes. */
import { createHash } from 'node:crypto'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { createEngine } from '../../../src/sandbox/docker/engine.ts'
import { hostPid, openWorld, processesWith, run, until } from '../fixture.ts'

const { dockerHost, image } = inject('docker')!
const engine = createEngine(dockerHost)

const labelOf = (dataDir: string) => {
  const stateDir = join(realpathSync(dataDir), 'sandbox')
  return { 'errand.host': createHash('sha256').update(stateDir).digest('hex').slice(0, 12) }
}

/** The containers of this data directory's host, ended ones too. */
async function containersOf(dataDir: string): Promise<string[]> {
  const filters = JSON.stringify({ label: Object.entries(labelOf(dataDir)).map((pair) => pair.join('=')) })
  const found = await engine.ask<{ Id: string }[]>('GET', '/containers/json', { all: 1, filters })
  return found.map(({ Id }) => Id)
}

test('a sandbox is one container, which ends and is removed when its host is killed', async () => {
  const world = await openWorld()
  try {
    const mark = `75.${process.pid}`
    await run(await world.sandbox(), 'bash', `(setsid sleep ${mark} &) ; sleep 0.1`)
    await until(() => processesWith(mark).length === 1)
    expect(await containersOf(world.dataDir)).toHaveLength(1)
    process.kill(hostPid(world.dataDir), 'SIGKILL')
    await until(async () => (await containersOf(world.dataDir)).length === 0)
    expect(processesWith(mark)).toEqual([])
  } finally {
    await world.close()
  }
})

test('containers of a dead host are removed at the next start, those of others are not', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
  const other = mkdtempSync(join(tmpdir(), 'errand-test-'))
  const leave = (Labels: object) =>
    engine.ask<{ Id: string }>('POST', '/containers/create', {}, { Image: image, Cmd: ['/bin/true'], Labels })
  await leave(labelOf(dataDir))
  const { Id: neighbour } = await leave(labelOf(other))
  const world = await openWorld({ dataDir })
  try {
    expect(await containersOf(dataDir)).toEqual([])
    expect(await containersOf(other)).toEqual([neighbour])
  } finally {
    await world.close()
    await engine.ask('DELETE', `/containers/${neighbour}`)
    for (const directory of [dataDir, other]) rmSync(directory, { recursive: true, force: true })
  }
})

test('a volume of the image is neither writable nor on the host’s disk', async () => {
  const { Id } = await engine.ask<{ Id: string }>(
    'POST',
    '/containers/create',
    {},
    { Image: image, Cmd: ['/bin/true'] },
  )
  const volumes = { Volumes: { '/srv': {} }, Env: ['LANG=de_DE.UTF-8', 'PATH=/opt/bin:/usr/bin'] }
  await engine.ask('POST', '/commit', { container: Id, repo: 'errand-volumes', tag: 'latest' }, volumes)
  await engine.ask('DELETE', `/containers/${Id}`)
  const world = await openWorld({ image: 'errand-volumes' })
  try {
    const { output } = await run(await world.sandbox(), 'bash', 'touch /srv/x; echo $LANG $PATH')
    expect(output).toMatch(
      /^touch: .*\/srv\/x.*\nC\.UTF-8 \/errand\/bin:\/opt\/bin:\/usr\/bin:\/workspace\/\.local\/bin\n$/,
    )
    const filters = JSON.stringify({ ancestor: ['errand-volumes'] })
    const containers = await engine.ask<{ Mounts: { Type: string; Destination: string }[] }[]>(
      'GET',
      '/containers/json',
      { filters },
    )
    expect(containers).toHaveLength(1)
    const found = containers[0]!.Mounts.filter(({ Type }) => Type === 'volume')
    expect(found.map(({ Destination }) => Destination)).toEqual(['/dev/pts'])
  } finally {
    await world.close()
  }
})

test('the facts describe the kernel, the user and the limits', async () => {
  const world = await openWorld()
  try {
    const { driver, enforced, notEnforced } = await world.sandboxes.facts()
    expect(driver).toBe('docker')
    expect(enforced.join('\n')).toMatch(/memory: 256 MiB.*swap: none.*processor: 2 cores.*processes: 64/s)
    expect(notEnforced.join('\n')).toMatch(/kernel: shared with the host \(runc\).*host user: .*uid 1000/s)
  } finally {
    await world.close()
  }
})

test.each([
  [{ image: 'no-such-image' }, /^sandbox\.image: this Docker has no image no-such-image\. Make one by script\/rootfs/],
  [{ runtime: 'warp' }, /^sandbox\.runtime: this Docker has no runtime warp; it has .*runc/],
  [
    { driver: 'bubblewrap', rootfs: 'no-such-image' },
    /^sandbox\.rootfs: there is no directory no-such-image, and this/,
  ],
] as const)('%j is refused in a sentence', async (options, sentence) => {
  await expect(openWorld(options)).rejects.toThrow(sentence)
})

test('an image is the root of a bubblewrap sandbox', async () => {
  const world = await openWorld({ driver: 'bubblewrap', rootfs: image })
  try {
    const sandbox = await world.sandbox()
    const { output } = await run(
      sandbox,
      'bash',
      'grep errand /etc/passwd; touch /usr/x; find / -xdev -type b 2>/dev/null | wc -l',
    )
    expect(output).toMatch(/^errand:x:1000:1000:.*\ntouch: .* Read-only file system\n0\n$/)
    expect((await run(sandbox, 'javascript', '6 * 7')).output).toBe('42\n')
    const { probes } = await world.sandboxes.facts()
    expect(probes.filter(({ refused }) => !refused)).toEqual([])
  } finally {
    await world.close()
  }
})
