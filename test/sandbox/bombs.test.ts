/** Bombs of every kind: each is stopped at its limit, is told as what it was, and leaves the sandbox able to work. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { LIMITS, openWorld, run, type World } from './fixture.ts'

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
})
afterAll(() => world.close())

test('files without end are stopped in every place that can be written to', async () => {
  const code = `
import errno, os, pathlib
def fill(place):
    made = []
    try:
        while len(made) <= ${LIMITS.files}:
            path = os.path.join(place, f'file-{len(made)}')
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            made.append(path)
        return 'no end'
    except OSError as error: return errno.errorcode[error.errno]
    finally:
        for path in made: os.unlink(path)
{place: fill(place) for place in ('/workspace', '/tmp', '/dev/shm')}`
  expect((await run(sandbox, 'python', code)).output).toBe(
    "{'/workspace': 'ENOSPC', '/tmp': 'ENOSPC', '/dev/shm': 'ENOSPC'}\n",
  )
  expect((await run(sandbox, 'bash', 'echo alive > here; cat here')).output).toBe('alive\n')
  expect((await world.sandboxes.facts()).enforced.join('\n')).toContain(`number of files: ${LIMITS.files}`)
})
