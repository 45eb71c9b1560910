/**
 * Sandboxes with packages loaded before they were forked. Project `preloaded` runs the tests of escapes, bombs, isolation and
 * sessions on them; here is what is theirs alone: when they are had, and that the packages are as if the code had loaded them.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../../../src/sandbox/port.ts'
import { hostPid, LIMITS, never, openWorld, run, until, untilPreloaded, type World } from '../fixture.ts'
import { descriptorsOf, firstProcesses, isThere, sharedMemory, templates, usages } from './forks.ts'

const ARE_LOADED = 'import sys; [name in sys.modules for name in ("numpy", "pandas", "matplotlib.pyplot")]'

let opened = 0

function open(world: World, preloaded: boolean): Promise<Sandbox> {
  const interactionId = `preloaded-${++opened}`
  return world.sandboxes.open({ interactionId, epoch: 1, lifetimeMs: 120_000, limits: LIMITS, preloaded }, never)
}

const saidIn = async (sandbox: Sandbox, code: string) => (await run(sandbox, 'python', code)).output

describe.runIf(process.getuid?.() === 0)('sandboxes with packages loaded', () => {
  test('cost nothing before one is of use, nobody waits for them, and others go on being without', async () => {
    const world = await openWorld({ pool: 1 })
    await until(async () => (await world.sandboxes.counts()).warm === 1)
    await (await open(world, false)).destroy()
    expect(templates(world)).toHaveLength(1)
    const first = await open(world, true)
    expect(await saidIn(first, ARE_LOADED)).toBe('[False, False, False]\n')
    await untilPreloaded(world.sandboxes)
    expect(templates(world)).toHaveLength(2)
    const [plain, loaded] = [await open(world, false), await open(world, true)]
    expect(await saidIn(plain, ARE_LOADED)).toBe('[False, False, False]\n')
    expect(await saidIn(loaded, ARE_LOADED)).toBe('[True, True, True]\n')
    await world.close()
  })

  test('are not had where each is to be started whole', async () => {
    const world = await openWorld({ forkServer: 'off' })
    for (let i = 0; i < 3; i++)
      expect(await saidIn(await open(world, true), ARE_LOADED)).toBe('[False, False, False]\n')
    await world.close()
  })

  test('when the host is killed, their template is gone with it', async () => {
    const world = await openWorld()
    await untilPreloaded(world.sandboxes)
    const known = templates(world)
    expect(known).toHaveLength(2)
    process.kill(hostPid(world.dataDir), 'SIGKILL')
    await until(() => !known.some(isThere))
    await world.close()
  })

  describe('while their template stands,', () => {
    let world: World
    const living: Sandbox[] = []
    beforeAll(async () => {
      world = await openWorld()
      await untilPreloaded(world.sandboxes)
    })
    afterEach(async () => {
      for (const sandbox of living.splice(0)) await sandbox.destroy()
    })
    afterAll(() => world.close())
    const loaded = async () => {
      const sandbox = await open(world, true)
      living.push(sandbox)
      return sandbox
    }
    const plain = async () => {
      const sandbox = await open(world, false)
      living.push(sandbox)
      return sandbox
    }

    test('the packages work as if the code had loaded them, here and in a process that it starts', async () => {
      const sandbox = await loaded()
      const code = `
import numpy as np, pandas as pd, matplotlib.pyplot as plt
from matplotlib import font_manager
table = pd.DataFrame({f'quarter {i}': [i * 1000.5, -i] for i in range(9)})
table.plot()
figure, axes = plt.subplots()
axes.bar(['a', 'b'], np.arange(2))
figure.savefig('outputs/bars.png')
table`
      const { output } = await run(sandbox, 'python', code)
      expect(output).toMatch(/^ +quarter 0 .*quarter 8\n0 .*\n1 .*-8\.0\n\[figure saved: outputs\/figure-1\.png\]\n$/)
      expect(
        (await sandbox.list('outputs', { recursive: false, maxEntries: 9 })).entries.map(({ path }) => path),
      ).toEqual(['bars.png', 'figure-1.png'])
      expect(
        await saidIn(sandbox, 'import os, matplotlib as m; os.path.isdir(m.get_cachedir()), m.get_backend()'),
      ).toBe("(True, 'agg')\n")
      const apart =
        'import subprocess; subprocess.run(["python3", "-c", "import matplotlib.pyplot as p; p.plot([1]); p.savefig(\'x.png\')"]).returncode'
      expect(await saidIn(sandbox, apart)).toBe('0\n')
    })

    test('no two sandboxes or sessions get the same random numbers', async () => {
      const draw =
        'import random, numpy as np, pandas as pd; random.random(), np.random.random(), np.random.default_rng().random(), int(pd.Series(range(10**6)).sample(1).iloc[0])'
      const [one, other] = [await loaded(), await loaded()]
      const said = [await saidIn(one, draw), await saidIn(other, draw)]
      await run(one, 'python', 'import os; os._exit(1)')
      said.push(await saidIn(one, draw))
      const draws = said.map((text) => text.match(/[\d.e-]+/g)!)
      expect(draws.map(({ length }) => length)).toEqual([4, 4, 4])
      for (const i of [0, 1, 2, 3]) expect(new Set(draws.map((drawn) => drawn[i])).size, `draw ${i}`).toBe(3)
    })

    test('environment, descriptors, places and limits are those of one without', async () => {
      const code = `import os, resource, gc
(sorted(os.environ.items()), sorted(os.listdir('/proc/self/fd')), [resource.getrlimit(n) for n in range(16)], gc.isenabled(),
 os.getcwd(), os.listdir('/workspace'), os.listdir('/run'), sys.path, sys.argv, sorted(line.split()[4] for line in open('/proc/self/mountinfo')))`
      const said = await saidIn(await loaded(), `import sys\n${code}`)
      expect(said).toContain("('LANG', 'C.UTF-8')")
      expect(said).toBe(await saidIn(await plain(), `import sys\n${code}`))
    })

    test('numpy computes with as many threads as the sandbox has cores, and the template has one', async () => {
      const count = 'import numpy as np, os; a = np.ones((500, 500)); b = a @ a; len(os.listdir("/proc/self/task"))'
      const [with_, without] = [await saidIn(await loaded(), count), await saidIn(await plain(), count)]
      expect(Number(with_)).toBe(Math.min(LIMITS.cpus, Number(without)))
      for (const pid of templates(world)) expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Threads:\t1$/m)
    })

    test('they share no descriptor and no memory that can be written', async () => {
      await loaded()
      await loaded()
      const all = [...templates(world), ...firstProcesses(world)]
      expect(all).toHaveLength(4)
      for (const pid of all) expect(sharedMemory(pid)).toEqual([])
      const own = all.map((pid) => new Set(descriptorsOf(pid).filter((target) => /^(socket|pipe):/.test(target))))
      expect(own.flatMap((set) => [...set])).toHaveLength(new Set(own.flatMap((set) => [...set])).size)
    })

    test('the memory of each is counted in its own group, and preloaded memory in none', async () => {
      const [one] = [await loaded(), await loaded()]
      const before = usages(world)
      expect(before).toHaveLength(2)
      for (const bytes of before) expect(bytes).toBeLessThan(24 * 2 ** 20)
      // All of the limit but a little is there to be used.
      const { end } = await run(one, 'python', `block = b"x" * (${LIMITS.memoryMiB - 48} * 2**20)`)
      expect(end).toEqual({ kind: 'exit', code: 0 })
      const grown = usages(world).map((bytes, i) => bytes - before[i]!)
      expect(grown.filter((bytes) => bytes >= (LIMITS.memoryMiB - 48) * 2 ** 20)).toHaveLength(1)
      expect(grown.filter((bytes) => bytes < 16 * 2 ** 20)).toHaveLength(1)
    })

    test('kill -9 of their template ends them alone; the next come at once, without, and then with', async () => {
      const [one, other] = [await loaded(), await plain()]
      const [plainTemplate, template] = templates(world)
      process.kill(template!, 'SIGKILL')
      await until(async () => (await run(one, 'bash', 'echo alive')).end.kind === 'lost')
      expect(await saidIn(other, '40 + 2')).toBe('42\n')
      expect(await saidIn(await loaded(), '40 + 2')).toBe('42\n')
      await untilPreloaded(world.sandboxes)
      expect(templates(world)).toHaveLength(2)
      expect(templates(world)).toContain(plainTemplate)
      expect(templates(world)).not.toContain(template)
      expect(readFileSync(join(world.dataDir, 'sandbox/host.log'), 'utf8')).not.toContain('no sandbox is preloaded')
    })
  })
})
