/** The clients as they are published: packed, installed from the packed file alone, and used on a real server. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Server, startServer } from '../support/server.ts'
import { npmInstall, npmPack, packagerEnv, ROOT, userEnv } from './install.ts'

const run = promisify(execFile)
const PYTHON = '/usr/bin/python3'

let scratch: string
let server: Server
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'errand-clients-'))
  server = await startServer()
})
afterAll(async () => {
  await server?.stop()
  await rm(scratch, { recursive: true, force: true })
})

const address = () => ({ ERRAND_BASE_URL: server.url, ERRAND_API_KEY: server.key })

/** A directory of its own. */
async function place(name: string): Promise<string> {
  const path = join(scratch, name)
  await mkdir(path)
  return path
}

/** A copy: packing builds its dist/, which the examples of the checkout use meanwhile. */
async function sourceOfClient(): Promise<string> {
  const [from, copy] = [join(ROOT, 'clients/typescript'), join(await place('copy'), 'clients/typescript')]
  await cp(from, copy, { recursive: true, filter: (path) => !/\/(dist|node_modules)$/.test(path) })
  for (const name of ['tsconfig.json', 'node_modules']) await symlink(join(ROOT, name), join(copy, '../..', name))
  return copy
}

const TYPED = `
import { Errand, type Interaction } from 'errand-client'
import { inputFile } from 'errand-client'
import { saveFiles } from 'errand-client/node'

const errand = new Errand()
const stream = errand.interactions.stream({
  instruction: 'What is the sum of the column b in data.csv?',
  tools: ['code_execution'],
  files: [await inputFile('data.csv', 'a,b\\n1,10\\n2,32\\n')],
})
const names = new Set<string>()
for await (const event of stream) names.add(event.event)
const interaction: Interaction = await stream.final()
await saveFiles(errand, interaction.files ?? [], '.')
console.log(JSON.stringify([interaction.status, interaction.output?.includes('42'), names.has('tool_result')]))
`

test('TypeScript: npm pack of clients/typescript; its types hold, and it runs', async () => {
  const [packing, home] = [await place('npm'), await place('typescript')]
  await npmInstall(home, await npmPack(await sourceOfClient(), packing))
  await writeFile(join(home, 'use.mts'), TYPED)
  await symlink(join(ROOT, 'node_modules/@types'), join(home, 'node_modules/@types'))
  const options = '--noEmit --strict --target es2024 --module nodenext --types node'.split(' ')
  await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, 'use.mts'], { cwd: home })
  const { stdout } = await run(process.execPath, ['use.mts'], { cwd: home, env: userEnv(address()) })
  expect(JSON.parse(stdout)).toEqual(['completed', true, true])
})

const SCRIPT = `
import asyncio, json, sys
import errand
from errand import AsyncErrand, Errand

with Errand() as client:
    stream = client.interactions.stream(
        "What is the sum of the column b in data.csv?",
        tools=["code_execution"],
        files=[{"name": "data.csv", "content": "a,b\\n1,10\\n2,32\\n"}],
    )
    names = {event.event for event in stream}
    interaction = stream.final()

async def again():
    async with AsyncErrand() as client:
        return (await client.interactions.wait(interaction.interaction_id)).output

same = asyncio.run(again()) == interaction.output
print(json.dumps([interaction.status, "42" in interaction.output, "tool_result" in names, same, errand.__file__]))
`

test.for([
  ['wheel', '.whl'],
  ['sdist', '.tar.gz'],
])('Python: the %s of clients/python', async ([form, ending]) => {
  const [packing, home] = [await place(`${form}-packed`), await place(form!)]
  await run(PYTHON, ['-m', 'hatchling', 'build', '-t', form!, '-d', packing], { cwd: join(ROOT, 'clients/python') })
  const [packed] = (await readdir(packing)).filter((name) => name.endsWith(ending!))
  // httpx is Debian's, as it is for the other tests of the client; from PyPI it would come by itself.
  const alone = ['--no-index', '--no-deps', '--no-build-isolation', '--no-warn-script-location', '--target', home]
  await run(PYTHON, ['-m', 'pip', 'install', ...alone, join(packing, packed!)], { env: packagerEnv() })
  await writeFile(join(home, 'use.py'), SCRIPT)
  const { stdout } = await run(PYTHON, ['use.py'], { cwd: home, env: userEnv(address()) })
  expect(JSON.parse(stdout)).toEqual(['completed', true, true, true, join(home, 'errand/__init__.py')])
  expect((await readdir(join(home, 'errand'))).includes('py.typed')).toBe(true)
})
