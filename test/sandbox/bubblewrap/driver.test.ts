/** The bubblewrap driver: a host uid for each sandbox, a configured tree as the root, and the self-test. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBubblewrap } from '../../../src/sandbox/bubblewrap/bubblewrap.ts'
import type { Cell, CellShape, Driver, FasterDriver, PreloadedDriver } from '../../../src/sandbox/driver.ts'
import { selectDriver } from '../../../src/sandbox/host/select-driver.ts'
import { probeDriver } from '../../../src/sandbox/host/self-probe.ts'
import { DRIVER, LIMITS, never, openWorld, quiet, run, until } from '../fixture.ts'

const isRoot = process.getuid?.() === 0

test('each sandbox has a host uid of its own if the host runs as root', async () => {
  const world = await openWorld()
  const [sandbox, other] = [await world.sandbox(), await world.sandbox()]
  const uids = await Promise.all(
    [sandbox, other].map(async (one) => (await run(one, 'bash', "awk '{print $2}' /proc/self/uid_map; id -u")).output),
  )
  expect(uids.every((text) => text.endsWith('\n1000\n'))).toBe(true)
  const mounts = await Promise.all(
    [sandbox, other].map(
      async (one) => /uid=(\d+)/.exec((await run(one, 'bash', 'grep " /workspace " /proc/mounts')).output)?.[1],
    ),
  )
  if (isRoot) {
    expect(new Set(mounts).size).toBe(2)
    expect(mounts.every((uid) => Number(uid) > 0)).toBe(true)
  } else expect(mounts[0]).toBe(mounts[1])
  await world.close()
})

const NOT_USED = 'The bubblewrap sandbox does not hold on this host, so it is not used: not refused were '

describe('a driver that lets an attack through is not used, and the sentence names the attack:', () => {
  let stateDir: string
  let driver: Driver
  let forked: FasterDriver | undefined
  let preloaded: PreloadedDriver | undefined
  beforeAll(async () => {
    stateDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
    driver = await openBubblewrap({ ...DRIVER, stateDir })
    if (isRoot) forked = await driver.faster!.open()
    preloaded = await forked?.openPreloaded()
  })
  afterAll(async () => {
    await preloaded?.close()
    await forked?.close()
    await driver.close()
    rmSync(stateDir, { recursive: true })
  })
  /** The real driver, with cells that are weaker than requested. */
  const weakened = (way: Driver, change: (shape: CellShape) => CellShape): Driver => {
    return { ...way, launch: (shape) => way.launch(change(shape)) }
  }

  test('a file of the host is shown', async () => {
    const shown = weakened(driver, (shape) => ({ ...shape, mounts: [{ source: '/var', target: '/var' }] }))
    await expect(probeDriver(shown, LIMITS, ['/etc/shadow', '/var'])).rejects.toThrow(
      new RegExp(`^${NOT_USED}seeing /var of the host \\(seen\\)\\.$`),
    )
  })

  test('the browser’s cell alone, which must refuse all but the namespaces of Chromium’s own sandbox', async () => {
    const shown = weakened(driver, (shape) =>
      shape.profile === 'browser' ? { ...shape, mounts: [{ source: '/var', target: '/var' }] } : shape,
    )
    await expect(probeDriver(shown, LIMITS, ['/var'])).rejects.toThrow(
      'The bubblewrap sandbox of the browser does not hold on this host, so it is not used: not refused were seeing /var of the host (seen).',
    )
  })

  test.runIf(isRoot)('preloaded, after which plain cells are used instead', async () => {
    const told: object[] = []
    const wide = (shape: CellShape) => ({ ...shape, limits: { ...shape.limits, files: 2 * LIMITS.files } })
    const own = { ...preloaded!, ...weakened(preloaded!, wide), close: async () => {} }
    const faster = { ...forked!, openPreloaded: async () => own, close: async () => {} }
    const { driver: chosen } = await selectDriver(
      { ...driver, faster: { ...driver.faster!, use: 'auto', open: async () => faster }, close: async () => {} },
      (way, browsers) => probeDriver(way, LIMITS, [], browsers),
      { ...quiet, info: (details) => told.push(details) },
    )
    const shape = { limits: LIMITS, profile: 'code', mounts: [] } as const
    const before = told.length
    expect(chosen.preloaded!(shape)).toBeUndefined()
    await until(() => told.length > before)
    expect(told.at(-1)).toEqual({ why: expect.stringContaining(`${NOT_USED}files without end`) })
    expect(chosen.preloaded!(shape)).toBeUndefined()
    await (await chosen.launch(shape)).end()
    await chosen.close()
  })

  describe.each(isRoot ? ['started whole', 'forked', 'preloaded'] : ['started whole'])(
    'with cells that are %s,',
    (how) => {
      const way = () => (how === 'forked' ? forked! : how === 'preloaded' ? preloaded! : driver)

      test('namespaces can be made, as Chromium needs it', async () => {
        const open = weakened(way(), (shape) => ({ ...shape, profile: 'browser' }))
        await expect(probeDriver(open, LIMITS, [])).rejects.toThrow(`${NOT_USED}a new user namespace (unshare)`)
      })

      test('there may be more files than the limit says', async () => {
        const wide = weakened(way(), (shape) => ({ ...shape, limits: { ...shape.limits, files: 2 * LIMITS.files } }))
        await expect(probeDriver(wide, LIMITS, [])).rejects.toThrow(
          `${NOT_USED}files without end (/workspace: ${2 * LIMITS.files}, /tmp: ${2 * LIMITS.files})`,
        )
      })

      test('two sandboxes are one', async () => {
        let first: Promise<Cell> | undefined
        const shared = { ...way(), launch: (shape: CellShape) => (first ??= way().launch(shape)) }
        await expect(probeDriver(shared, LIMITS, [])).rejects.toThrow(
          /another sandbox's loopback .*another sandbox's \/tmp/,
        )
      })

      test('only its declared exceptions are tolerated', async () => {
        const wide = weakened(way(), (shape) => ({ ...shape, limits: { ...shape.limits, files: 2 * LIMITS.files } }))
        const { probes } = await probeDriver({ ...wide, selfTestExceptions: ['files without end'] }, LIMITS, [])
        const open = new Set(
          probes.filter(({ refused }) => !refused).map(({ name }) => name.replace(', by a browser', '')),
        )
        expect([...open]).toEqual(['files without end'])
      })
    },
  )
})

test('a configured tree is the root, complete and read-only', async () => {
  const tree = mkdtempSync(join(tmpdir(), 'errand-tree-'))
  makeTree(tree)
  const own = await openWorld({ rootfs: tree })
  try {
    const inside = await own.sandbox()
    expect((await run(inside, 'python', 'import json, sys\nopen("/opt/mark").read(), sys.executable')).output).toBe(
      "('of the tree\\n', '/usr/bin/python3')\n",
    )
    expect((await run(inside, 'python', 'open("/opt/mark", "w")')).output).toContain('Read-only file system')
    expect(await run(inside, 'bash', 'true')).toMatchObject({
      output: 'bash is not available in this sandbox.\n',
      end: { kind: 'exit', code: 127 },
    })
    const javascript = await run(inside, 'javascript', '1')
    expect(javascript.end).toEqual({ kind: 'exit', code: 127 })
    expect(javascript.output).toContain('JavaScript is not available in this sandbox.')
    expect((await own.sandboxes.facts()).inside).toMatch(/no JavaScript/)
    if (DRIVER.forkServer !== 'on') return
    const asked = { interactionId: 'asked', epoch: 1, lifetimeMs: 60_000, limits: LIMITS, preloaded: true }
    expect((await run(await own.sandboxes.open(asked, never), 'python', '40 + 2')).output).toBe('42\n')
    const log = () => readFileSync(join(own.dataDir, 'sandbox/host.log'), 'utf8')
    await until(() => log().includes('no sandbox is preloaded'))
    expect(log()).toContain('its root has none of numpy, pandas, matplotlib')
  } finally {
    await own.close()
    rmSync(tree, { recursive: true })
  }
})

/** Copies only Python and its libraries from the host. */
function makeTree(tree: string): void {
  const copy = (path: string) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    cpSync(realpathSync(path), join(tree, path), { recursive: true })
  }
  const script =
    'import sys, sysconfig, glob; print(sysconfig.get_path("stdlib"), *glob.glob(sysconfig.get_path("stdlib") + "/lib-dynload/*.so"))'
  const [stdlib = '', ...modules] = execFileSync('/usr/bin/python3', ['-I', '-S', '-c', script], { encoding: 'utf8' })
    .trim()
    .split(' ')
  const libraries = execFileSync('ldd', ['/usr/bin/python3', ...modules], { encoding: 'utf8' }).match(
    /(?<=\s)\/\S+(?= \()/g,
  )!
  for (const path of new Set([stdlib, ...libraries.map((path) => join('/usr', path.replace(/^\/usr/, '')))])) copy(path)
  copy('/usr/bin/python3')
  for (const name of ['lib', 'lib64']) symlinkSync(`usr/${name}`, join(tree, name))
  mkdirSync(join(tree, 'opt'))
  execFileSync('sh', ['-c', 'echo of the tree > "$1/opt/mark"; chmod -R a+rX "$1"', 'sh', tree])
}
