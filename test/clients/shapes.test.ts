/** The shapes of the clients are those of the server's OpenAPI document, and what is made from one text was made from it. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startServer } from '../support/server.ts'

const PYTHON = new URL('../../clients/python/', import.meta.url).pathname
const TYPESCRIPT = new URL('../../clients/typescript/', import.meta.url).pathname
const run = promisify(execFile)

let directory: string
let document: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'errand-shapes-'))
  document = join(directory, 'openapi.json')
  const server = await startServer()
  await writeFile(document, await (await fetch(`${server.url}/openapi.json`)).text())
  await server.stop()
})
afterAll(() => rm(directory, { recursive: true }))

const REMEDY = 'run script/clients'

it('TypeScript: types.ts', async () => {
  await run(process.execPath, [join(TYPESCRIPT, 'generate.ts'), document, directory])
  const kept = await readFile(join(TYPESCRIPT, 'src/generated/types.ts'), 'utf8')
  expect(kept, REMEDY).toBe(await readFile(join(directory, 'types.ts'), 'utf8'))
})

it('Python: shapes.py', async () => {
  await run(process.execPath, [join(PYTHON, 'generate.ts'), document, directory])
  for (const name of ['shapes.py', '_shapes.py']) {
    const kept = await readFile(join(PYTHON, 'src/errand', name), 'utf8')
    expect(kept, REMEDY).toBe(await readFile(join(directory, name), 'utf8'))
  }
})

it('Python: the sync and the async client are one text', async () => {
  await run('/usr/bin/python3', [join(PYTHON, 'make_clients.py'), directory])
  for (const name of ['_sync.py', '_async.py']) {
    const kept = await readFile(join(PYTHON, 'src/errand', name), 'utf8')
    expect(kept, REMEDY).toBe(await readFile(join(directory, name), 'utf8'))
  }
})
