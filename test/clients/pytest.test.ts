/** Runs the pytest suite of the Python client, for what only Python has, on a real server. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ROOT } from '../package/install.ts'
import { startServer } from '../support/server.ts'

test('pytest', { timeout: 300_000 }, async () => {
  const server = await startServer()
  const python = join(ROOT, 'clients/python')
  const env = {
    PATH: process.env.PATH,
    PYTHONPATH: join(python, 'src'),
    PYTHONDONTWRITEBYTECODE: '1',
    ERRAND_BASE_URL: server.url,
    ERRAND_API_KEY: server.key,
  }
  const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', join(python, 'tests')]
  const said = await promisify(execFile)('/usr/bin/python3', args, { env }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }) => stdout + stderr,
  )
  await server.stop()
  expect(said).toMatch(/^\d+ passed in/m)
  expect(said).not.toMatch(/failed|error/i)
})
